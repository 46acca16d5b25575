"""Read lines of one text or a pair of texts each, and answer them. No Paddle here."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Generic, TypeVar

from reader.errors import InputError, print_error
from reader.system.progress import progress, show_progress

Line = tuple[str, bytes]
Texts = tuple[str, ...]
Encoded = TypeVar("Encoded")
Answer = TypeVar("Answer")


def read_lines(paths: list[Path]) -> Iterator[Line]:
    """Yield the lines of files in order, or those of standard input if there are none, each with its name.

    Blank lines at the end of a file are left out. The progress over the bytes is shown, unless somebody is typing.
    Raises InputError for a file that cannot be read, and if there are no files and standard input is closed.
    """
    if not paths:
        if sys.stdin is None:
            raise InputError("standard input: is closed; give the texts to read")
        if sys.stdin.isatty():
            show_progress(False)
    size = sum(path.stat().st_size for path in paths) if paths else os.fstat(0).st_size
    files: list[Path | None] = [*paths] or [None]
    with progress("answering", size or None, "B") as bar:  # the size of a pipe is 0
        for path in files:
            name, blank = str(path or "standard input"), list[Line]()
            try:
                with path.open("rb") if path else nullcontext(sys.stdin.buffer) as lines:
                    for number, line in enumerate(lines, start=1):
                        bar.update(len(line))
                        blank.append((f"{name}, line {number}", line.rstrip(b"\r\n")))
                        if line.strip():
                            yield from blank
                            blank.clear()
            except OSError as error:
                raise InputError(f"{name}: cannot read the texts: {error.strerror}") from error


def decoded(line: bytes) -> str:
    """Decode UTF-8; raises InputError, also for a blank line."""
    try:
        text = line.decode("utf-8").removeprefix("\ufeff")  # the byte order mark that some editors write
    except UnicodeDecodeError as error:
        raise InputError(f"not UTF-8 ({error.reason} at byte {error.start})") from error
    if not text.strip():
        raise InputError("a blank line")
    return text


def pair_of_texts(line: bytes) -> Texts:
    """Return the texts in a line that is one text, or two texts with a tab between them; raises InputError."""
    texts = decoded(line).split("\t")
    if len(texts) > 2:
        raise InputError(f"{len(texts)} texts, separated by tabs; expected one text or a pair")
    return tuple(texts)


@dataclass
class Answers(Generic[Encoded, Answer]):
    """The answers to valid lines. Invalid lines are reported on standard error, one line each.

    Attributes:
        lines: name and content of each line.
        parse: returns the texts in a line; raises InputError.
        encode: returns the texts of a line as a sequence of tokens; raises InputError.
        answer: returns one answer for each of some sequences.
        window: number of lines that are answered together; with 1, each before the next line is read.
        invalid: number of lines reported so far.
    """

    lines: Iterable[Line]
    parse: Callable[[bytes], Texts]
    encode: Callable[[Texts], Encoded]
    answer: Callable[[list[Encoded]], Iterable[Answer]]
    window: int
    invalid: int = 0

    def __iter__(self) -> Iterator[tuple[str, Texts, Answer]]:
        """Yield the name of each valid line, its texts and its answer, in the order of the lines."""
        valid = self._encoded()
        while window := list(islice(valid, self.window)):
            names, texts, encoded = zip(*window, strict=True)
            yield from zip(names, texts, self.answer([*encoded]), strict=True)

    def _encoded(self) -> Iterator[tuple[str, Texts, Encoded]]:
        for name, line in self.lines:
            try:
                texts = self.parse(line)
                encoded = self.encode(texts)
            except InputError as error:
                print_error(f"{name}: {error}")
                self.invalid += 1
            else:
                yield name, texts, encoded
