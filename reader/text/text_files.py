"""Read the text of files.

A `.txt` file has one paragraph or sentence per line and a blank line between documents. A `.jsonl` file has one
document per line; one field of the record contains its text. Either may be compressed with gzip (`.gz`).
"""

from __future__ import annotations

import codecs
import gzip
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

from reader.errors import InputError
from reader.system.untrusted_text import json_value

CHUNK_BYTES = 1 << 20
ASSUMED_COMPRESSION_RATIO = 3  # approximate size of a text divided by the size of its compressed file

_digest = partial(blake2b, digest_size=32)


def value_at(record: Any, key: str, default: Any = None) -> Any:
    """Return the value of a key of a JSON object. `doc.body` is the key `body` of the object under the key `doc`.

    A key that has the dot in its name comes first. Return `default` if there is no such key, or no object.
    """
    if not isinstance(record, dict):
        return default
    if key in record:
        return record[key]
    first, dot, rest = key.partition(".")
    return value_at(record.get(first), rest, default) if dot else default


def utf16_reason(start: bytes) -> str | None:
    """Return why a file cannot be read if its first bytes look like UTF-16, as a clause that continues `file: `.

    UTF-16 text begins with a byte order mark; without one, its first character has a zero byte if it is an English
    letter, a digit or a punctuation mark. None for other files.
    """
    is_utf16 = start[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) or (0 in start[:2] and any(start[:2]))
    return "looks like UTF-16; convert it with: iconv -f UTF-16 -t UTF-8 FILE > NEW_FILE" if is_utf16 else None


class Part(NamedTuple):
    """Consecutive whole lines of one file.

    path: the file; first_line: the number of the first line, counted from 1; raw: the bytes of the lines as they are in
    the file, after decompression, and a blank line behind the last of them; text_field: the field that contains the
    text in .jsonl records (see value_at).
    """

    path: Path
    first_line: int
    raw: bytes
    text_field: str

    def text(self) -> bytes:
        """Return the lines of text in UTF-8, as `text_of` does."""
        is_first = self.first_line == 1
        if is_first and (reason := utf16_reason(self.raw)):
            raise InputError(f"{self.path}: {reason}")
        # A byte order mark at the beginning of a file identifies the encoding and is not part of the text.
        raw = self.raw.removeprefix(codecs.BOM_UTF8) if is_first else self.raw
        try:
            text = raw.decode()
        except UnicodeDecodeError as error:
            line_start = raw.rfind(b"\n", 0, error.start) + 1
            line = self.first_line + raw.count(b"\n", 0, line_start)
            place = f"{error.reason} at byte {error.start - line_start}"
            raise InputError(f"{self.path}:{line}: not UTF-8 ({place})") from error
        if is_jsonl(self.path):
            return b"".join(self._record(*line) for line in enumerate(text.split("\n"), self.first_line))
        return raw

    def _record(self, line_number: int, line: str) -> bytes:
        """Return the text of one record, which is one document. Blank lines inside it are removed."""
        if not line.strip():
            return b""
        try:
            record: Any = json_value(line)
        except ValueError as error:
            raise InputError(f"{self.path}:{line_number}: not JSON: {error}") from error
        text = value_at(record, self.text_field)
        if not isinstance(text, str):
            raise InputError(f"{self.path}:{line_number}: no text field {self.text_field!r} (see --text_field)")
        lines = "".join(f"{part}\n" for part in text.split("\n") if part.strip())
        # A JSON escape may denote a lone surrogate (half a character), which cannot be encoded as UTF-8.
        return f"{lines}\n".encode("utf-8", "ignore")


# A part of a text that is processed as a whole: lines of one or more files.
Segment = list[Part]


def text_of(segment: Segment) -> bytes:
    """Return the lines of text in UTF-8. Each ends with a line feed; a blank line separates documents.

    Raises InputError, with file and line, for text that is not UTF-8 and for an invalid JSON record, and for a file
    that looks like UTF-16.
    """
    return b"".join(part.text() for part in segment)


def is_jsonl(path: Path) -> bool:
    return path.name.lower().removesuffix(".gz").endswith(".jsonl")


def is_compressed(path: Path) -> bool:
    return path.name.lower().endswith(".gz")


def text_size(path: Path) -> int:
    """Return the number of bytes of text in a file; an estimate if the file is compressed. Raises InputError."""
    with convert_read_errors(path):
        return path.stat().st_size * (ASSUMED_COMPRESSION_RATIO if is_compressed(path) else 1)


@contextmanager
def convert_read_errors(path: Path) -> Iterator[None]:
    """Convert an error that occurs while a file is read into an InputError that names the file."""
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{path}: damaged or cut short: {error}") from error
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error


class TextFiles:
    """The text of several files, read once from front to back.

    Attributes:
        text_size: the number of bytes of text; an estimate if a file is compressed.
        position: how many of them have been read (for progress bars).
        file_digests: for each file that has been read to its end, the 32-byte BLAKE2b of its content, decompressed.
    """

    def __init__(self, paths: list[Path], text_field: str = "text") -> None:
        self.paths = paths
        self.text_field = text_field
        self.text_size = sum(map(text_size, paths))
        self._stats = {path: path.stat() for path in paths}
        self.position = 0
        self.file_digests: list[bytes] = []

    @property
    def digest(self) -> str:
        """The digest of the text, in hexadecimal, once all of it has been read: of each file's format and content.

        BLAKE2b takes three fifths of the time of SHA-256.
        """
        digest = _digest()
        for path, content in zip(self.paths, self.file_digests, strict=True):
            digest.update(f"jsonl {self.text_field}".encode() if is_jsonl(path) else b"txt")
            digest.update(b"\xff" + content)  # no byte of UTF-8
        return digest.hexdigest()

    def segments(self, segment_bytes: int) -> Iterator[Segment]:
        """Yield the text in segments of whole lines and about `segment_bytes` bytes.

        The same text always gives the same segments. Raises InputError for a file that cannot be read or is damaged.
        """
        parts: list[Part] = []
        size = 0
        for path in self.paths:
            line_number = 1
            for raw in self._chunks(path, segment_bytes):
                parts.append(Part(path, line_number, raw, self.text_field))
                line_number += raw.count(b"\n")
                size += len(raw)
                if size >= segment_bytes:
                    yield parts
                    parts, size = [], 0
        if parts:
            yield parts

    def lines(self) -> Iterator[str]:
        """Yield each line of text without its line end; "" separates documents.

        Raises InputError as `segments` and `text_of` do.
        """
        for segment in self.segments(1 << 22):
            for line in text_of(segment).decode().split("\n")[:-1]:
                yield "" if line.isspace() else line.rstrip("\r")

    def _chunks(self, path: Path, max_bytes: int) -> Iterator[bytes]:
        """Yield the content of a file in chunks of whole lines, and a blank line behind the last one.

        Only a line feed ends a line. Raises InputError unless the file stays as it was when this text was opened.
        """
        digest, before = _digest(), self._stats[path]
        with convert_read_errors(path), path.open("rb") as on_disk:
            if is_compressed(path) and not before.st_size:
                raise InputError(f"{path}: damaged or cut short: a compressed file is never empty")
            file = gzip.GzipFile(fileobj=on_disk) if is_compressed(path) else on_disk
            unfinished_line: list[bytes] = []
            while chunk := file.read(min(max_bytes, CHUNK_BYTES)):
                digest.update(chunk)
                self.position += len(chunk)
                end = chunk.rfind(b"\n") + 1
                if end:
                    yield b"".join([*unfinished_line, chunk[:end]])
                    unfinished_line = []
                unfinished_line.append(chunk[end:])
            now = os.stat(on_disk.fileno())
            if (now.st_size, now.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
                raise InputError(f"{path}: has changed while it was read; run the command again")
            tail = b"".join(unfinished_line)
            yield tail + b"\n\n" if tail else b"\n"
        self.file_digests.append(digest.digest())
