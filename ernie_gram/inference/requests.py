"""Read lines as requests of one text or a pair of texts each, and answer them. No Paddle here."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Generic, TypeVar

from reader.errors import InputError, print_error
from reader.system.progress import progress, show_progress
from reader.system.untrusted_text import json_value

Line = tuple[str, bytes]
Encoded = TypeVar("Encoded")
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Request:
    """One or two texts to answer.

    Attributes:
        name: the file and the line, for errors.
        texts: one text, or a pair.
        record: what the answer repeats: the texts, or the JSON object that contains them.
    """

    name: str
    texts: tuple[str, ...]
    record: dict[str, Any]


def read_lines(paths: list[Path]) -> Iterator[Line]:
    """Return the lines of files in order, or those of standard input if there are none, each with its name.

    Blank lines at the end of a file are left out. The progress over the bytes is shown, unless somebody is typing.
    Raises InputError for a file that cannot be read, and if there are no files and standard input is closed.
    """
    if not paths:
        if sys.stdin is None:
            raise InputError("standard input: is closed; give the texts to read")
        if sys.stdin.isatty():
            show_progress(False)
    return _lines(paths)


def _lines(paths: list[Path]) -> Iterator[Line]:
    size = sum(path.stat().st_size for path in paths) if paths else os.fstat(0).st_size
    with progress("answering", size or None, "B") as bar:  # the size of a pipe is 0
        if not paths:
            yield from _named_lines("standard input", iter(sys.stdin.buffer), bar.update)
        for path in paths:
            try:
                with path.open("rb") as file:
                    yield from _named_lines(str(path), file, bar.update)
            except OSError as error:
                raise InputError(f"{path}: cannot read the texts: {error.strerror}") from error


def _named_lines(name: str, lines: Iterator[bytes], report: Callable[[int], object]) -> Iterator[Line]:
    blank: list[Line] = []
    for number, line in enumerate(lines, start=1):
        report(len(line))
        blank.append((f"{name}, line {number}", line.rstrip(b"\r\n")))
        if line.strip():
            yield from blank
            blank.clear()


def decoded(line: bytes) -> str:
    """Decode UTF-8; raises InputError, also for a blank line."""
    try:
        text = line.decode("utf-8").removeprefix("\ufeff")  # the byte order mark that some editors write
    except UnicodeDecodeError as error:
        raise InputError(f"not UTF-8 ({error.reason} at byte {error.start})") from error
    if not text.strip():
        raise InputError("a blank line")
    return text


def single_request(name: str, line: bytes) -> Request:
    """Return the request of a line that is one text; raises InputError."""
    text = decoded(line)
    return Request(name, (text,), {"text": text})


def pair_request(name: str, line: bytes) -> Request:
    """Return the request of a line that is one text, or two texts with a tab between them; raises InputError."""
    texts = tuple(decoded(line).split("\t"))
    if len(texts) > 2:
        raise InputError(f"{len(texts)} texts, separated by tabs; expected one text or a pair")
    keys = ("text",) if len(texts) == 1 else ("text_a", "text_b")
    return Request(name, texts, dict(zip(keys, texts, strict=True)))


def json_request(name: str, line: bytes) -> Request:
    """Return the request of a line that is a JSON object with "text", or with "text_a" and "text_b".

    Raises InputError if it is not one.
    """
    try:
        record = json_value(decoded(line))
    except ValueError as error:
        raise InputError(f"not JSON: {error}") from error
    if not isinstance(record, dict):
        raise InputError(f"expected a JSON object, found {type(record).__name__}")
    keys = [key for key in ("text", "text_a", "text_b") if key in record]
    if keys not in (["text"], ["text_a", "text_b"]):
        found = " and ".join(keys) or "none of these"
        raise InputError(f'expected the key "text", or "text_a" and "text_b"; found {found}')
    return Request(name, tuple(record[key] for key in keys), record)


RequestParser = Callable[[str, bytes], Request]


@dataclass
class Answers(Generic[Encoded, Answer]):
    """The answers to valid lines. Invalid lines are reported on standard error, one line each.

    Attributes:
        lines: name and content of each line.
        parse: how a line becomes a request.
        encode: returns a request's texts as a sequence of tokens; raises InputError.
        answer: returns one answer for each of some encoded requests.
        window: number of requests that are answered together; with 1, each before the next line is read.
        invalid: number of lines reported so far.
    """

    lines: Iterable[Line]
    parse: RequestParser
    encode: Callable[[tuple[str, ...]], Encoded]
    answer: Callable[[list[Encoded]], Iterable[Answer]]
    window: int
    invalid: int = 0

    def __iter__(self) -> Iterator[tuple[Request, Answer]]:
        """Yield each valid request with its answer, in the order of the lines."""
        valid = self._encoded()
        while window := list(islice(valid, self.window)):
            requests, encoded = zip(*window, strict=True)
            yield from zip(requests, self.answer([*encoded]), strict=True)

    def _encoded(self) -> Iterator[tuple[Request, Encoded]]:
        for name, line in self.lines:
            try:
                request = self.parse(name, line)
                encoded = self.encode(request.texts)
            except InputError as error:
                print_error(f"{name}: {error}")
                self.invalid += 1
            else:
                yield request, encoded
