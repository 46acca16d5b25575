"""Apply a function to every segment of a text, in several processes and in bounded memory. A stopped job can resume."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from reader.errors import InputError
from reader.system.process_pool import ordered_map
from reader.system.progress import progress
from reader.text.file_ranges import FileRange, RangeReader, split_into_ranges
from reader.text.text_files import (
    Part,
    Segment,
    TextDigest,
    TextFiles,
    is_compressed,
    no_text_error,
    read_first_lines,
    run_with_error_location,
)

# Baseline memory per job in bytes: imported modules and compiled functions, mostly shared between the processes.
BASE_MEMORY_BYTES = 150 << 20
# Peak memory in bytes per byte of text: while a segment is processed, and while it waits in the queue.
PROCESSING_BYTES_PER_TEXT_BYTE, QUEUED_BYTES_PER_TEXT_BYTE = 16, 5
# Limits of the size of a segment, in bytes of text.
MIN_SEGMENT_BYTES, MAX_SEGMENT_BYTES = 1 << 20, 64 << 20
UNLIMITED_BYTES = 1 << 62
# The size of the text for the warm-up, in bytes: enough to load and compile everything that other segments need.
WARM_UP_BYTES = 1 << 16


def max_workers(memory_bytes: int) -> int:
    """Return the number of processes for which `memory_bytes` of memory suffice, at least 1."""
    min_segments = (memory_bytes - BASE_MEMORY_BYTES) // MIN_SEGMENT_BYTES
    bytes_per_worker = PROCESSING_BYTES_PER_TEXT_BYTE + QUEUED_BYTES_PER_TEXT_BYTE
    return max(1, (min_segments - 3 * QUEUED_BYTES_PER_TEXT_BYTE) // bytes_per_worker)


@dataclass(frozen=True)
class Resources:
    """Limits of a job.

    Attributes:
        memory_bytes: memory of all processes together, in bytes.
        workers: number of processes.
    """

    memory_bytes: int
    workers: int

    def segment_bytes(self, text: TextFiles) -> int:
        """Return the number of bytes of text in a segment.

        It is limited by the memory, and by the size of the text: every process should get several segments.
        """
        queued_segments = self.workers + 3
        bytes_per_text_byte = (
            self.workers * PROCESSING_BYTES_PER_TEXT_BYTE + queued_segments * QUEUED_BYTES_PER_TEXT_BYTE
        )
        fits_memory = (self.memory_bytes - BASE_MEMORY_BYTES) // bytes_per_text_byte
        balanced = text.text_size // (4 * self.workers)
        return max(MIN_SEGMENT_BYTES, min(MAX_SEGMENT_BYTES, fits_memory, balanced))

    @property
    def max_merge_entries(self) -> int:
        """The number of 8-byte entries that one process may merge in one pass."""
        return max(1 << 16, (self.memory_bytes - BASE_MEMORY_BYTES) // (5 * 8 * self.workers))


class _Task(NamedTuple):
    """A segment, or the file range that contains it; the folder for its result; whether that folder already exists."""

    source: Segment | FileRange
    folder: Path
    is_done: bool


class _SegmentResult(NamedTuple):
    """What the parent process needs to know about a segment that was read.

    block_digests: for each file of a file range, the digests of its blocks; empty for a segment that the parent read.
    """

    is_blank: bool
    block_digests: list[bytes]


@dataclass(frozen=True)
class _ProcessSegment:
    """Apply `function` to a segment unless its folder exists. The text is read in any case, for the digest."""

    function: Callable[[Segment, Path], None]
    text_field: str

    def __call__(self, task: _Task) -> _SegmentResult:
        def process(segment: Segment) -> None:
            if not task.is_done:
                self.function(segment, task.folder)

        if isinstance(task.source, Segment):
            run_with_error_location(process, task.source)
            return _SegmentResult(task.source.is_blank, [])
        reader = RangeReader(task.source, self.text_field)
        (segment,) = reader.segments(UNLIMITED_BYTES)
        reader.run_with_error_location(process, segment)
        return _SegmentResult(segment.is_blank, reader.block_digests)


class _SegmentSources:
    """Iterate over a text: yield segments of compressed files, and file ranges of other files.

    Compressed files must be read from front to back by one process, which is this one. The worker processes read the
    file ranges.

    Attributes:
        progress: for each item so far, the files for which the result contains block digests, and its bytes on disk.
        digest: the digest of the text, as far as the digests of its blocks are known.
    """

    def __init__(self, text: TextFiles, segment_bytes: int) -> None:
        self._text, self._segment_bytes = text, segment_bytes
        self.progress: list[tuple[list[Path], int]] = []
        self.digest = TextDigest(text.paths, text.text_field)

    def __iter__(self) -> Iterator[Segment | FileRange]:
        for compressed, group in groupby(self._text.paths, is_compressed):
            if not compressed:
                for file_range in split_into_ranges(list(group), self._segment_bytes):
                    self.progress.append((file_range.paths, file_range.size))
                    yield file_range
                continue
            files, position = TextFiles(list(group), self._text.text_field), 0
            for segment in files.segments_unchecked(self._segment_bytes):
                self.progress.append(([], files.position - position))
                position = files.position
                yield segment
            self.digest.add(files.paths, files.block_digests)


def map_segments(
    function: Callable[[Segment, Path], None],
    text: TextFiles,
    folder: Path,
    resources: Resources,
    description: str,
    warm_up: Callable[[bytes], Any],
) -> tuple[list[Path], str]:
    """Call function(segment, result folder) for every segment of a text, in several processes.

    Args:
        function: must create the result folder atomically. It is not called if the result folder exists.
        folder: contains the result folders.
        description: says what is done, for the progress.
        warm_up: called with the first lines of the text before the processes are forked. The processes share what it
            loads and compiles.
    Returns:
        The result folders in the order of the segments, and the digest of the text.

    Raises InputError for invalid text, and if there is no text.
    """
    folder.mkdir(exist_ok=True)
    segment_bytes = resources.segment_bytes(text)
    workers = min(resources.workers, max(1, -(-text.text_size // segment_bytes)))
    if workers > 1:
        path = text.paths[0]
        first_lines = Segment([Part(path, 1, read_first_lines(path, WARM_UP_BYTES), False)], text.text_field)
        # Invalid text is ignored here: the process that reads its segment reports it with file and line.
        with suppress(UnicodeDecodeError, InputError):
            warm_up(first_lines.text())
    sources = _SegmentSources(text, segment_bytes)
    result_folders: list[Path] = []

    def tasks() -> Iterator[_Task]:
        for index, source in enumerate(sources):
            result_folders.append(folder / f"{index}")
            yield _Task(source, result_folders[-1], result_folders[-1].is_dir())

    is_blank = True
    process_segment = _ProcessSegment(function, text.text_field)
    with progress(description, text.size, "B") as phase:
        for index, result in enumerate(ordered_map(process_segment, tasks(), workers)):
            paths, disk_bytes = sources.progress[index]
            phase.advance(disk_bytes)
            is_blank = is_blank and result.is_blank
            sources.digest.add(paths, result.block_digests)
    if is_blank:
        raise no_text_error(text.paths)
    return result_folders, sources.digest.result()
