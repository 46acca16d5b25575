"""Raw text: what is in the files that hold it.

A file is `.txt` (one paragraph or sentence a line, a blank line between documents) or `.jsonl` (one
document a line, its text in one field); either may be gzipped (`.gz`).
"""

from __future__ import annotations

import codecs
import gzip
import json
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeVar

from reader.errors import InputError
from reader.text.digest import BlockDigests, file_digest, text_digest

CHUNK_BYTES = 1 << 22
UNPACKED = 3  # times as large as its file is a text that was packed, about

Result = TypeVar("Result")


class Part(NamedTuple):
    """Whole lines of one file, as they lie in it.

    path: of the file; line: number of the first one, from 1 on; raw: their bytes; ends: whether the file ends here.
    """

    path: Path
    line: int
    raw: bytes
    ends: bool


@dataclass(frozen=True)
class Segment:
    """A piece of text: lines of one file or of several.

    Attributes:
        parts: where it comes from.
        text_field: of the records in .jsonl files.
    """

    parts: list[Part]
    text_field: str

    def text(self) -> bytes:
        """Its lines, each ending with a line feed; a blank one stands between documents.

        Raises InputError, with file and line, for a record of JSON that is bad.
        """
        return b"".join(self._text_of(part) for part in self.parts)

    def _text_of(self, part: Part) -> bytes:
        if is_jsonl(part.path):
            return b"".join(self._record(part.path, *line) for line in enumerate(part.raw.split(b"\n"), part.line))
        # A byte order mark is an encoding's signature, not text.
        raw = part.raw.removeprefix(codecs.BOM_UTF8) if part.line == 1 else part.raw
        end = b"\n" if raw and not raw.endswith(b"\n") else b""
        return raw + end + (b"\n" if part.ends else b"")

    def _record(self, path: Path, number: int, line: bytes) -> bytes:
        """The text of one record, which is a document: blank lines inside it end none."""
        if not line.strip():
            return b""
        try:
            record: Any = json.loads(line.decode("utf-8-sig" if number == 1 else "utf-8"))
        except UnicodeDecodeError as error:
            raise _not_utf8(path, number, error) from error
        except (ValueError, RecursionError) as error:
            raise InputError(f"{path}:{number}: not JSON: {error}") from error
        text = record.get(self.text_field) if isinstance(record, dict) else None
        if not isinstance(text, str):
            raise InputError(f"{path}:{number}: no text field {self.text_field!r} (see --text_field)")
        lines = "".join(f"{part}\n" for part in text.split("\n") if part.strip())
        # An escape may stand for half a character (a lone surrogate), which no file can hold.
        return f"{lines}\n".encode("utf-8", "ignore")

    @property
    def is_blank(self) -> bool:
        return not any(part.raw.strip() for part in self.parts)

    def decoded(self) -> str:
        """`text` as a string; raises UnicodeDecodeError, too, if it is not UTF-8."""
        return self.text().decode("utf-8")

    def blame(self) -> None:
        """Raise the InputError that names the first line which is not UTF-8, if there is one."""
        for part in self.parts:
            for number, line in enumerate(part.raw.split(b"\n"), part.line):
                try:
                    line.decode("utf-8")
                except UnicodeDecodeError as error:
                    raise _not_utf8(part.path, number, error) from error


def attributed(work: Callable[[Segment], Result], segment: Segment) -> Result:
    """work(segment); a UnicodeDecodeError becomes the InputError that names file and line."""
    try:
        return work(segment)
    except UnicodeDecodeError:
        segment.blame()
        raise


def _not_utf8(path: Path, number: int, error: UnicodeDecodeError) -> InputError:
    return InputError(f"{path}:{number}: not UTF-8 ({error.reason} at byte {error.start})")


def is_jsonl(path: Path) -> bool:
    return path.name.removesuffix(".gz").endswith(".jsonl")


def is_packed(path: Path) -> bool:
    return path.name.endswith(".gz")


def text_size(path: Path) -> int:
    """How many bytes of text are in a file; for a packed one, about."""
    return path.stat().st_size * (UNPACKED if is_packed(path) else 1)


class TextDigest:
    """The digest of a text that is read in parts, by whoever it may be (see text_digest.py)."""

    def __init__(self, paths: list[Path], text_field: str) -> None:
        self._text_field = text_field
        self._blocks = {path: bytearray() for path in paths}

    def add(self, paths: list[Path], blocks: list[bytes]) -> None:
        """Of each of these files the digests of the next blocks."""
        for path, found in zip(paths, blocks, strict=True):
            self._blocks[path] += found

    def result(self) -> str:
        forms = (f"jsonl {self._text_field}" if is_jsonl(path) else "txt" for path in self._blocks)
        return text_digest(map(file_digest, forms, self._blocks.values()))


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """What goes wrong while a file is read, as an InputError that names it."""
    try:
        yield
    except OSError as error:
        if isinstance(error, gzip.BadGzipFile):
            raise InputError(f"{path}: damaged or cut short: {error}") from error
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (EOFError, zlib.error) as error:
        raise InputError(f"{path}: damaged or cut short: {error}") from error


def beginning(path: Path, size: int) -> bytes:
    """The lines at the beginning of a file, unpacked, of at most `size` bytes; raises InputError as TextFiles does."""
    with reading(path), gzip.open(path) if is_packed(path) else path.open("rb") as file:
        found = bytes(file.read(size))
    return found[: found.rfind(b"\n") + 1]


class TextFiles:
    """The text of several files, read once from front to back.

    `position` of `size` bytes on disk have been read (for progress), which hold about `text_size` bytes of text.
    `blocks` holds the digests of the blocks, unpacked, of every file that has been read to its end.
    """

    def __init__(self, paths: list[Path], text_field: str = "text") -> None:
        self.paths = paths
        self.text_field = text_field
        self.size = sum(path.stat().st_size for path in paths)
        self.text_size = sum(map(text_size, paths))
        self.blocks: list[bytes] = []
        self._finished = 0
        self._current: IO[bytes] | None = None

    @property
    def position(self) -> int:
        return self._finished + (self._current.tell() if self._current else 0)

    def segments(self, size: int) -> Iterator[Segment]:
        """The text in pieces of about `size` bytes, cut at the ends of lines; the same text in the same pieces.

        Raises InputError for a file that cannot be read or is damaged, and when there is no text at all.
        """
        empty = True
        for segment in self.pieces(size):
            empty = empty and segment.is_blank
            yield segment
        if empty:
            raise no_text(self.paths)

    def pieces(self, size: int) -> Iterator[Segment]:
        """`segments`, of which there need not be any."""
        parts: list[Part] = []
        gathered = 0
        for path in self.paths:
            line = 1
            for raw, ends in self._chunks(path, size):
                parts.append(Part(path, line, raw, ends))
                line += raw.count(b"\n")
                gathered += len(raw)
                if gathered >= size:
                    yield Segment(parts, self.text_field)
                    parts, gathered = [], 0
        if parts:
            yield Segment(parts, self.text_field)

    def lines(self) -> Iterator[str]:
        """Each line of text without its line end; "" stands between documents.

        Raises InputError as `segments` does, and for what is not UTF-8.
        """
        for segment in self.segments(1 << 22):
            for line in attributed(Segment.decoded, segment).split("\n")[:-1]:
                yield "" if line.isspace() else line.rstrip("\r")

    def _chunks(self, path: Path, size: int) -> Iterator[tuple[bytes, bool]]:
        """A file's bytes in chunks of whole lines (LF only ends one), and whether each is the last."""
        digests = BlockDigests()
        try:
            with reading(path), path.open("rb") as self._current:
                file = gzip.GzipFile(fileobj=self._current) if is_packed(path) else self._current
                rest: list[bytes] = []
                while chunk := file.read(min(size, CHUNK_BYTES)):
                    digests.update(chunk)
                    end = chunk.rfind(b"\n") + 1
                    if end:
                        yield b"".join([*rest, chunk[:end]]), False
                        rest = []
                    rest.append(chunk[end:])
                yield b"".join(rest), True
        finally:
            self._current = None
        self.blocks.append(digests.finish())
        self._finished += path.stat().st_size


def no_text(paths: list[Path]) -> InputError:
    return InputError(f"{', '.join(map(str, paths))}: no text in it")
