"""Working through a text segment by segment, on all cores and in bounded memory; stopped, it can go on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from tqdm import tqdm

from reader.errors import InputError
from reader.system.process_pool import in_order
from reader.text.file_ranges import Unit, UnitReader, units_of
from reader.text.text_files import Part, Segment, TextDigest, TextFiles, attributed, beginning, is_packed, no_text

# What the processes have loaded and compiled before they do anything, most of which they share; and the bytes of memory
# that a byte of text takes, at most, while it is worked on, and on its way there.
BASE_BYTES, WORKING, WAITING = 150 << 20, 16, 5
LEAST_BYTES, MOST_BYTES = 1 << 20, 64 << 20  # of text, that are worth a segment
WHOLE = 1 << 62  # bytes: all of it
REHEARSED = 1 << 16  # bytes of text, to load and compile all that the rest will need


def most_workers(memory: int) -> int:
    """How many processes so much memory is enough for, in bytes."""
    return max(1, ((memory - BASE_BYTES) // LEAST_BYTES - 3 * WAITING) // (WORKING + WAITING))


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


class _Task(NamedTuple):
    """A segment of text, or where to read it; the folder for what comes of it; whether that is there already."""

    source: Segment | Unit
    folder: Path
    done: bool


class _Read(NamedTuple):
    """Of a segment that has been read: the digests of the blocks of every file in it, if they were still to be had."""

    is_blank: bool
    blocks: list[bytes]


@dataclass(frozen=True)
class _Unfinished:
    """The work on a segment, unless its folder is there already; its text is read nonetheless, for the digest."""

    work: Callable[[Segment, Path], None]
    text_field: str

    def __call__(self, task: _Task) -> _Read:
        def work(segment: Segment) -> None:
            if not task.done:
                self.work(segment, task.folder)

        if isinstance(task.source, Segment):
            attributed(work, task.source)
            return _Read(task.source.is_blank, [])
        reader = UnitReader(task.source, self.text_field)
        (segment,) = reader.segments(WHOLE)
        reader.checked(work, segment)
        return _Read(segment.is_blank, reader.blocks)


class _Sources:
    """The segments of a text, or where a process is to read one: only packed files have to be read in one place.

    Attributes:
        steps: of each segment so far, the files that its reader will have digests for, and its bytes on disk.
        digest: of the text, as far as its blocks are known.
    """

    def __init__(self, text: TextFiles, size: int) -> None:
        self._text, self._size = text, size
        self.steps: list[tuple[list[Path], int]] = []
        self.digest = TextDigest(text.paths, text.text_field)

    def __iter__(self) -> Iterator[Segment | Unit]:
        for packed, group in groupby(self._text.paths, is_packed):
            if not packed:
                for unit in units_of(list(group), self._size):
                    self.steps.append((unit.paths, unit.size))
                    yield unit
                continue
            files, position = TextFiles(list(group), self._text.text_field), 0
            for segment in files.pieces(self._size):
                self.steps.append(([], files.position - position))
                position = files.position
                yield segment
            self.digest.add(files.paths, files.blocks)


def over_segments(
    work: Callable[[Segment, Path], None],
    text: TextFiles,
    folder: Path,
    resources: Resources,
    what: str,
    rehearse: Callable[[bytes], Any],
) -> tuple[list[Path], str]:
    """work(segment, its folder in `folder`) for every segment of a text; returns the folders in order, and its digest.

    `work` makes the folder, whole or not at all; where it is there already, nothing is left to do. `rehearse` takes a
    little of the text before the processes are forked: they share what it loads and compiles.
    Raises InputError for bad text, and for none.
    """
    folder.mkdir(exist_ok=True)
    size = resources.segment_bytes(text)
    workers = min(resources.workers, max(1, -(-text.text_size // size)))
    if workers > 1:
        path = text.paths[0]
        few_lines = Segment([Part(path, 1, beginning(path, REHEARSED), False)], text.text_field)
        # What is bad about it will be found in its turn, and named.
        with suppress(UnicodeDecodeError, InputError):
            rehearse(few_lines.text())
    sources = _Sources(text, size)
    folders: list[Path] = []

    def tasks() -> Iterator[_Task]:
        for place, source in enumerate(sources):
            folders.append(folder / f"{place}")
            yield _Task(source, folders[-1], folders[-1].is_dir())

    is_blank = True
    with tqdm(total=text.size, unit="B", unit_scale=True, desc=what, mininterval=0.5) as bar:
        for place, read in enumerate(in_order(_Unfinished(work, text.text_field), tasks(), workers)):
            paths, read_bytes = sources.steps[place]
            bar.update(read_bytes)
            is_blank = is_blank and read.is_blank
            sources.digest.add(paths, read.blocks)
    if is_blank:
        raise no_text(text.paths)
    return folders, sources.digest.result()
