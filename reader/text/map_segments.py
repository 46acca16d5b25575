"""Apply a function to every segment of a text, in several processes and in bounded memory. A stopped job can resume."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reader.system.processes import ordered_map
from reader.system.progress import progress
from reader.text.text_files import Segment, TextFiles

# Baseline memory per job in bytes: imported modules and compiled functions, mostly shared between the processes.
BASE_MEMORY_BYTES = 150 << 20
# Peak memory in bytes per byte of text: while a segment is processed, and while it waits in the queue.
PROCESSING_BYTES_PER_TEXT_BYTE, QUEUED_BYTES_PER_TEXT_BYTE = 16, 5
# Limits of the size of a segment, in bytes of text.
MIN_SEGMENT_BYTES, MAX_SEGMENT_BYTES = 1 << 20, 64 << 20
# Text with an accent and Han characters, for which everything is loaded and compiled.
WARM_UP_TEXT = "caf\u00e9 \u4e2d\u6587\n".encode()


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


def map_segments(
    function: Callable[[Segment, Path], None],
    text: TextFiles,
    folder: Path,
    resources: Resources,
    description: str,
    warm_up: Callable[[bytes], Any],
) -> list[Path]:
    """Call function(segment, result folder) for every segment of a text in several processes; this one reads the text.

    Args:
        function: must create the result folder atomically. It is not called if the result folder exists.
        folder: contains the result folders.
        description: what is done, for the display of progress.
        warm_up: called with WARM_UP_TEXT before the processes are forked. They share what it loads and compiles.
    Returns:
        The result folders in the order of the segments.

    Raises InputError for invalid text.
    """
    folder.mkdir(exist_ok=True)
    segment_bytes = resources.segment_bytes(text)
    workers = min(resources.workers, max(1, -(-text.text_size // segment_bytes)))
    result_folders: list[Path] = []
    if workers > 1:
        warm_up(WARM_UP_TEXT)

    def tasks() -> Iterator[tuple[Segment, Path, int]]:
        for segment in text.segments(segment_bytes):
            result_folders.append(folder / f"{len(result_folders)}")
            yield segment, result_folders[-1], text.position

    def process(task: tuple[Segment, Path, int]) -> int:
        segment, result_folder, position = task
        if not result_folder.is_dir():
            function(segment, result_folder)
        return position

    with progress(description, text.text_size, "B") as bar:
        for position in ordered_map(process, tasks(), workers):
            bar.update(position - bar.n)
    return result_folders
