"""Raw text: which files to read, and their lines.

A file is `.txt` (one paragraph or sentence a line, a blank line between documents) or `.jsonl` (one
document a line, its text in one field); either may be gzipped (`.gz`).
"""

from __future__ import annotations

import glob
import gzip
import hashlib
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, cast

from reader.errors import InputError

SUFFIXES = (".txt", ".txt.gz", ".jsonl", ".jsonl.gz")


def find_files(inputs: list[str]) -> list[Path]:
    """The text files that `inputs` (files, folders or globs) name, sorted, each once.

    Raises InputError for an input that names nothing, and for a file of an unknown kind.
    """
    found: dict[Path, Path] = {}
    for name in inputs:
        path = Path(name)
        if path.is_dir():
            matches = [file for file in path.rglob("*") if file.name.endswith(SUFFIXES) and file.is_file()]
            if not matches:
                raise InputError(f"{name}: the folder holds no {', '.join(SUFFIXES)} file")
        else:
            matches = [path] if path.is_file() else [Path(m) for m in glob.glob(name, recursive=True)]
            matches = [match for match in matches if match.is_file()]
            if not matches:
                raise InputError(f"{name}: no such file, folder or pattern")
            for match in matches:
                if not match.name.endswith(SUFFIXES):
                    raise InputError(f"{match}: cannot tell its format; expected one of {', '.join(SUFFIXES)}")
        found.update((match.resolve(), match) for match in matches)
    return sorted(found.values())


class TextFiles:
    """The lines of several files, read once from front to back.

    `position` of `size` bytes on disk have been read (for progress); `digest` is the SHA-256 of the lines that
    came, document ends included, and complete once the last has.
    """

    def __init__(self, paths: list[Path], text_field: str = "text") -> None:
        self.paths = paths
        self.text_field = text_field
        self.size = sum(path.stat().st_size for path in paths)
        self._digest = hashlib.sha256()
        self._finished = 0
        self._current: IO[bytes] | None = None

    @property
    def position(self) -> int:
        return self._finished + (self._current.tell() if self._current else 0)

    @property
    def digest(self) -> str:
        return self._digest.hexdigest()

    def lines(self) -> Iterator[str]:
        """Yield each line of text without its line end; "" stands between documents.

        Raises InputError for text that is not UTF-8, a damaged .gz, a bad JSON line (each with its line
        number), and when there is no text at all.
        """
        empty = True
        for path in self.paths:
            try:
                for line in self._lines_of(path):
                    empty = empty and not line
                    self._digest.update(line.encode("utf-8", "surrogatepass") + b"\n")
                    yield line
            except OSError as error:
                raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
            self._digest.update(b"\n")
            yield ""
        if empty:
            raise InputError(f"{', '.join(map(str, self.paths))}: no text in it")

    def _lines_of(self, path: Path) -> Iterator[str]:
        is_json = path.name.removesuffix(".gz").endswith(".jsonl")
        with path.open("rb") as self._current:
            file = gzip.GzipFile(fileobj=self._current) if path.name.endswith(".gz") else self._current
            for number, raw in enumerate(self._raw_lines(path, cast("IO[bytes]", file)), start=1):
                try:
                    # A byte order mark is an encoding's signature, not text.
                    line = raw.decode("utf-8-sig" if number == 1 else "utf-8")
                except UnicodeDecodeError as error:
                    raise InputError(f"{path}:{number}: not UTF-8 ({error.reason} at byte {error.start})") from error
                if is_json:
                    if line.strip():
                        # A record is one document: blank lines inside it end none.
                        yield from (part for part in self._json_text(path, number, line).split("\n") if part.strip())
                        yield ""
                else:
                    line = line.rstrip("\r\n")
                    yield "" if line.isspace() else line
        self._finished += path.stat().st_size
        self._current = None

    def _raw_lines(self, path: Path, file: IO[bytes]) -> Iterator[bytes]:
        """Lines end at LF only: str.splitlines would also cut at U+2028 and the like."""
        try:
            yield from file
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise InputError(f"{path}: damaged or cut short: {error}") from error

    def _json_text(self, path: Path, number: int, line: str) -> str:
        try:
            record: Any = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{path}:{number}: not JSON: {error}") from error
        text = record.get(self.text_field) if isinstance(record, dict) else None
        if not isinstance(text, str):
            raise InputError(f"{path}:{number}: no text field {self.text_field!r} (see --text_field)")
        return text


def blocks(lines: Iterator[str], characters: int = 1 << 22) -> Iterator[list[str]]:
    """Group lines into lists of about `characters` characters, so that each list can be handled in one go."""
    block: list[str] = []
    size = 0
    for line in lines:
        block.append(line)
        size += len(line) + 1
        if size >= characters:
            yield block
            block, size = [], 0
    if block:
        yield block
