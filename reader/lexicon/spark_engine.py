"""Counting with Spark, for text that is too large for one machine to count in acceptable time.

The stages, and the files that connect them, are those of the local engine. Spark runs the tasks: the driver and all
executors see the same storage, with the text and the work folder beside the output. A file is read by one task, as a
stream; the size of the other tasks is bounded for any size of the text. The driver receives only kept words and
l-grams.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from reader.lexicon.counting_stages import split_segment
from reader.lexicon.local_engine import LocalEngine
from reader.system.processes import Result, Task
from reader.text.map_segments import Resources
from reader.text.text_files import TextFiles, digest_of, text_size

if TYPE_CHECKING:
    from pyspark import SparkContext

# Bytes of text per segment, and of memory per task. They do not depend on the machines, so that a stopped job can be
# resumed on others.
SEGMENT_BYTES, TASK_MEMORY_BYTES = 16 << 20, 1 << 29


class SparkEngine(LocalEngine):
    """Applies the counting stages to one text (see extraction.Engine)."""

    def __init__(self, context: SparkContext, text: TextFiles, folder: Path) -> None:
        """`folder` is the work folder for finished results, on storage that all machines share."""
        cores = context.defaultParallelism
        super().__init__(text, Resources(TASK_MEMORY_BYTES * cores, cores), folder.absolute())
        self._context = context

    def _split(self, lowercase: bool, segmenter: str, folder: Path) -> tuple[list[Path], str]:
        # The working directory of an executor may differ from that of the driver.
        paths = [path.absolute() for path in self._text.paths]
        text_field = self._text.text_field
        split = partial(_split_files, lowercase, segmenter, text_field, SEGMENT_BYTES)
        done = self._map(split, [(group, folder / f"{number}") for number, group in enumerate(grouped(paths))], "")
        segments, digests = ([each for parts in column for each in parts] for column in zip(*done, strict=True))
        return segments, digest_of(paths, text_field, digests)

    def _map(self, function: Callable[[Task], Result], tasks: Sequence[Task], what: str) -> Iterable[Result]:
        # A few parts per core: to start a part takes longer than a small task.
        return self._context.parallelize(tasks, min(len(tasks), 4 * self._resources.workers)).map(function).collect()


def grouped(paths: list[Path]) -> list[list[Path]]:
    """Return files in groups of consecutive ones, each as small as possible with SEGMENT_BYTES or more of text."""
    groups, size = list[list[Path]](), SEGMENT_BYTES
    for path in paths:
        if size >= SEGMENT_BYTES:
            groups.append([])
            size = 0
        groups[-1].append(path)
        size += text_size(path)
    return groups


def _split_files(
    lowercase: bool, segmenter: str, text_field: str, segment_bytes: int, task: tuple[list[Path], Path]
) -> tuple[list[Path], list[bytes]]:
    """Split a group of files into words; return the folders of its segments, and TextFiles.file_digests.

    Raises InputError for invalid text.
    """
    paths, folder = task
    folder.mkdir(exist_ok=True)
    text, saved = TextFiles(paths, text_field), list[Path]()
    for segment in text.segments(segment_bytes):
        saved.append(folder / f"{len(saved)}")
        if not saved[-1].is_dir():
            split_segment(lowercase, segmenter, segment).save(saved[-1])
    return saved, text.file_digests
