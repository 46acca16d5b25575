"""Working through a text segment by segment, on all cores and in bounded memory; stopped, it can go on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tqdm import tqdm

from reader.parallel import in_order
from reader.text import Segment, TextFiles, attributed

# What a process takes before it does anything, and the bytes of memory that a byte of text takes, at most, while it is
# worked on, and on its way there.
BASE_BYTES, WORKING, WAITING = 150 << 20, 16, 5
LEAST_BYTES, MOST_BYTES = 1 << 20, 64 << 20  # of text, that are worth a segment
REHEARSED = 1 << 16  # bytes of text, to load and compile all that the rest will need


@dataclass(frozen=True)
class Resources:
    """What may be used: bytes of memory over all processes together, and how many processes."""

    memory: int
    workers: int

    def segment_bytes(self, text: TextFiles) -> int:
        """Bytes of text in a segment: what memory allows, and enough segments for all to share."""
        ways = self.workers * WORKING + (self.workers + 3) * WAITING
        shared = text.text_size // (4 * self.workers)
        return max(LEAST_BYTES, min(MOST_BYTES, (self.memory - BASE_BYTES) // ways, shared))

    @property
    def entries(self) -> int:
        """Entries of 8 bytes that one process may merge at a time."""
        return max(1 << 16, (self.memory - BASE_BYTES) // (5 * 8 * self.workers))


@dataclass(frozen=True)
class _Unfinished:
    """The work on a segment, unless its folder is there already."""

    work: Callable[[Segment, Path], None]

    def __call__(self, task: tuple[Path, Segment | None]) -> None:
        folder, segment = task
        if segment is not None:
            attributed(lambda segment: self.work(segment, folder), segment)


def over_segments(
    work: Callable[[Segment, Path], None],
    text: TextFiles,
    folder: Path,
    resources: Resources,
    what: str,
    rehearse: Callable[[bytes], Any],
) -> list[Path]:
    """work(segment, its folder in `folder`) for every segment of a text; returns the folders, in order.

    `work` makes the folder, whole or not at all; where it is there already, nothing is left to do. `rehearse` takes a
    little of the text before the processes are forked: they share what it loads and compiles.
    Raises InputError for bad text.
    """
    folder.mkdir(exist_ok=True)
    folders: list[Path] = []
    size = resources.segment_bytes(text)

    def tasks() -> Iterator[tuple[Path, Segment | None]]:
        for place, segment in enumerate(text.segments(size)):
            if place == 0 and workers > 1:
                # What is bad about it will be found in its turn, and named.
                with suppress(UnicodeDecodeError):
                    rehearse(segment.parts[0].raw[:REHEARSED])
            folders.append(folder / f"{place}")
            yield folders[-1], None if folders[-1].is_dir() else segment

    workers = min(resources.workers, max(1, -(-text.text_size // size)))
    with tqdm(total=text.size, unit="B", unit_scale=True, desc=what, mininterval=0.5) as bar:
        for _ in in_order(_Unfinished(work), tasks(), workers):
            bar.update(text.position - bar.n)
        bar.update(text.size - bar.n)
    return folders
