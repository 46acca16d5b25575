"""Split a text into file ranges for independent tasks: each task reads only its own range, from shared storage."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, TypeVar

from reader.errors import InputError, SystemRefusedError
from reader.text.digest import BLOCK_BYTES, BlockDigests
from reader.text.text_files import (
    CHUNK_BYTES,
    Part,
    Segment,
    TextFiles,
    convert_read_errors,
    is_compressed,
    run_with_error_location,
    text_size,
)

Result = TypeVar("Result")

# Stands for the line number of the first line of a range. To compute it, the whole file before the range must be read.
UNKNOWN_LINE = 1 << 62


class FileRange(NamedTuple):
    """What one task reads: several whole files, or the lines of one uncompressed file that begin in [start, stop).

    If `stop` is 0, the range consists of whole files. `start` is a multiple of BLOCK_BYTES. `is_last`: whether the file
    ends at `stop`.
    """

    paths: list[Path]
    start: int = 0
    stop: int = 0
    is_last: bool = False


def split_into_ranges(paths: list[Path], range_bytes: int) -> list[FileRange]:
    """Return file ranges of about `range_bytes` bytes of text, in the order of the text.

    A range holds one or more whole files, or a part of one file. A compressed file is never divided, because it cannot
    be read from its middle.
    """
    range_bytes = max(1, range_bytes // BLOCK_BYTES) * BLOCK_BYTES
    ranges: list[FileRange] = []
    small_files: list[Path] = []
    small_bytes = 0
    for path in paths:
        disk_bytes = path.stat().st_size
        is_divided = disk_bytes > range_bytes and not is_compressed(path)
        text_bytes = text_size(path)
        if small_files and (is_divided or small_bytes + text_bytes > range_bytes):
            ranges.append(FileRange(small_files))
            small_files, small_bytes = [], 0
        if is_divided:
            bounds = [*range(0, disk_bytes, range_bytes), disk_bytes]
            ranges += [FileRange([path], start, stop, stop == disk_bytes) for start, stop in pairwise(bounds)]
        else:
            small_files.append(path)
            small_bytes += text_bytes
    return [*ranges, FileRange(small_files)] if small_files else ranges


class RangeReader:
    """Reads the text of a file range once.

    Attributes:
        block_digests: for each file of the range, the digests of its blocks in the range. Complete after all segments
            have been read.
    """

    def __init__(self, file_range: FileRange, text_field: str) -> None:
        self._file_range, self._text_field = file_range, text_field
        self.block_digests: list[bytes] = []

    def segments(self, segment_bytes: int) -> Iterator[Segment]:
        """Yield the text of the range in segments.

        A range of whole files gives segments of about `segment_bytes` bytes; a part of a file is one segment. Raises
        InputError for a file that is damaged or cannot be read.
        """
        if self._file_range.stop:
            yield self._read_part(count_lines=False)
            return
        text = TextFiles(self._file_range.paths, self._text_field)
        yield from text.segments_unchecked(segment_bytes)
        self.block_digests = text.block_digests

    def run_with_error_location(self, function: Callable[[Segment], Result], segment: Segment) -> Result:
        """Return function(segment). For invalid text, raise an InputError that names the file and the line."""
        try:
            return run_with_error_location(function, segment)
        except SystemRefusedError:
            raise
        except InputError:
            if segment.parts[0].first_line != UNKNOWN_LINE:
                raise
            # The error names a wrong line. Run again with the true line number, which raises the correct error.
            return run_with_error_location(function, self._read_part(count_lines=True))

    def _read_part(self, count_lines: bool) -> Segment:
        """Return a range of one file as a segment. Its line numbers are correct only with `count_lines`."""
        (path,), start, stop, is_last = self._file_range
        with convert_read_errors(path), path.open("rb") as file:
            file.seek(max(0, start - 1))
            byte_before = file.read(min(1, start))
            inside = file.read(stop - start)
            if len(inside) < stop - start:
                raise InputError(f"{path}: cannot be read: it has become shorter")
            # If a line begins before this range, the range in which it begins reads all of it.
            skipped = 0 if byte_before in (b"", b"\n") else inside.find(b"\n") + 1 or len(inside)
            # Likewise, this range reads its own last line to the end. If no line begins in this range, `skipped` is
            # len(inside), and nothing after the range is read.
            line_end = b"" if inside.endswith(b"\n") or skipped == len(inside) else file.readline()
            # No range contains bytes that were appended to the file. The end of its last document would be missing.
            if is_last and file.seek(0, os.SEEK_END) > stop:
                raise InputError(f"{path}: has become longer while it was read; run the command again")
        digests = BlockDigests()
        digests.update(inside)
        self.block_digests = [digests.finish()]
        first_line = 1 if start == 0 else UNKNOWN_LINE
        if count_lines:
            first_line = 1 + count_line_feeds(path, start + skipped)
        return Segment([Part(path, first_line, (inside + line_end)[skipped:], is_last)], self._text_field)


def count_line_feeds(path: Path, stop: int) -> int:
    """Return the number of line feeds in the first `stop` bytes of a file."""
    count = 0
    with convert_read_errors(path), path.open("rb") as file:
        while stop > 0 and (chunk := file.read(min(stop, CHUNK_BYTES))):
            count += chunk.count(b"\n")
            stop -= len(chunk)
    return count
