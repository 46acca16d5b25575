"""A text cut up for tasks that share nothing but its storage: each reads its own unit, and nobody reads all of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, TypeVar

from reader.errors import InputError, SystemRefusedError
from reader.text.digest import BLOCK_BYTES, BlockDigests
from reader.text.text_files import CHUNK_BYTES, Part, Segment, TextFiles, attributed, is_packed, reading, text_size

Result = TypeVar("Result")

NOT_COUNTED = 1 << 62  # in place of the number of a unit's first line, for which all that is before had to be read


class Unit(NamedTuple):
    """What one task reads: whole files; or, of one file that is not packed, the lines that begin in [start, stop).

    With `stop` 0 it is whole files. `start` is a multiple of BLOCK_BYTES. `ends`: whether the file ends at `stop`.
    """

    paths: list[Path]
    start: int = 0
    stop: int = 0
    ends: bool = False

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return self.stop - self.start if self.stop else sum(path.stat().st_size for path in self.paths)


def units_of(paths: list[Path], size: int) -> list[Unit]:
    """Units of about `size` bytes of text, in the order of the text; each file in one unit, or alone in several.

    A packed file cannot be entered in its middle: it is never divided.
    """
    size = max(1, size // BLOCK_BYTES) * BLOCK_BYTES
    units: list[Unit] = []
    small: list[Path] = []
    gathered = 0
    for path in paths:
        here = path.stat().st_size
        divided = here > size and not is_packed(path)
        text = text_size(path)
        if small and (divided or gathered + text > size):
            units.append(Unit(small))
            small, gathered = [], 0
        if divided:
            stops = [*range(size, here, size), here]
            units += [Unit([path], start, stop, stop == here) for start, stop in pairwise([0, *stops])]
        else:
            small.append(path)
            gathered += text
    return [*units, Unit(small)] if small else units


class UnitReader:
    """The text of a unit, read once.

    `blocks`: of each of its files the digests of the blocks in it, once all segments have been read.
    """

    def __init__(self, unit: Unit, text_field: str) -> None:
        self._unit, self._text_field = unit, text_field
        self.blocks: list[bytes] = []

    def segments(self, size: int) -> Iterator[Segment]:
        """Its text in segments of about `size` bytes; raises InputError for a file that is damaged or unreadable."""
        if self._unit.stop:
            yield self._range(count_lines=False)
            return
        text = TextFiles(self._unit.paths, self._text_field)
        yield from text.pieces(size)
        self.blocks = text.blocks

    def checked(self, work: Callable[[Segment], Result], segment: Segment) -> Result:
        """work(segment); of bad text it raises an InputError that names file and line."""
        try:
            return attributed(work, segment)
        except SystemRefusedError:
            raise
        except InputError:
            if segment.parts[0].line != NOT_COUNTED:
                raise
            return attributed(work, self._range(count_lines=True))

    def _range(self, count_lines: bool) -> Segment:
        (path,), start, stop, ends = self._unit
        with reading(path), path.open("rb") as file:
            file.seek(max(0, start - 1))
            before = file.read(min(1, start))
            inside = file.read(stop - start)
            if len(inside) < stop - start:
                raise InputError(f"{path}: cannot be read: it has become shorter")
            # The rest of a line that began before is the business of the unit before.
            skipped = 0 if before in (b"", b"\n") else inside.find(b"\n") + 1 or len(inside)
            # Of a line that is longer than units, only the one in which it begins reads what is behind.
            behind = b"" if inside.endswith(b"\n") or skipped == len(inside) else file.readline()
            # Nobody reads what has been added: there would be text without a document's end.
            if ends and file.seek(0, os.SEEK_END) > stop:
                raise InputError(f"{path}: has become longer while it was read; begin again")
        digests = BlockDigests()
        digests.update(inside)
        self.blocks = [digests.finish()]
        line = 1 if start == 0 else NOT_COUNTED
        if count_lines:
            line = 1 + lines_before(path, start + skipped)
        return Segment([Part(path, line, (inside + behind)[skipped:], ends)], self._text_field)


def lines_before(path: Path, stop: int) -> int:
    """How many lines end in a file's first `stop` bytes."""
    lines = 0
    with reading(path), path.open("rb") as file:
        while stop > 0 and (chunk := file.read(min(stop, CHUNK_BYTES))):
            lines += chunk.count(b"\n")
            stop -= len(chunk)
    return lines
