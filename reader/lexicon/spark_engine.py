"""Counting by Spark, for text that is more than one machine can go through in the time there is.

Driver and executors see the same storage. The stages are those of the local engine; between them lie shuffles:

    units of text -> segments in words, kept where they were made (or made again, if they are lost)
    their words, by bucket -> those that occur often enough -> driver -> every executor
    their l-grams' entries, by a hash of the key -> those that occur often enough -> driver -> every executor

What a task works on is bounded, whatever the size of the text; what comes to the driver is only what is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from reader.errors import InputError
from reader.lexicon.counting import dealt
from reader.lexicon.counting_stages import (
    BUCKETS,
    MAX_ORDER,
    CountOrder,
    Grams,
    Split,
    SplitText,
    Words,
    merged_entries,
    merged_words,
)
from reader.lexicon.spark_session import one_line_failures, progress
from reader.text.file_ranges import FileRange, RangeReader, split_into_ranges
from reader.text.text_files import TextDigest, TextFiles, no_text_error

if TYPE_CHECKING:
    from pyspark import RDD, Broadcast, SparkContext

Int64s = npt.NDArray[np.int64]
UInt64s = npt.NDArray[np.uint64]

# Of text, in a segment. The Java side holds a few of them for every core at a time, in a heap of 1 GB if nobody gave it
# more: they are smaller than the local engine's.
LEAST_BYTES, MOST_BYTES = 1 << 20, 16 << 20
MERGED = 1 << 24  # l-grams, repeated ones included, that are worth a task; it takes some 20 bytes for each that differs


class SparkEngine:
    """The stages over one text (see counting_job.Engine).

    Attributes:
        num_segments: how many there are, once the text is split.
    """

    def __init__(self, context: SparkContext, text: TextFiles, most_bytes: int = MOST_BYTES) -> None:
        """`most_bytes` of text in a segment."""
        self._context, self._text = context, text
        self._cores = context.defaultParallelism
        self._segment_bytes = max(min(LEAST_BYTES, most_bytes), min(most_bytes, text.size // (2 * self._cores)))
        self._totals = np.zeros(MAX_ORDER, np.int64)
        self.num_segments = 0
        self._segments: RDD[Any] = context.emptyRDD()
        self._words: RDD[Any] = context.emptyRDD()

    def split(self, work: Split) -> tuple[Int64s, str]:
        """Split the text, and keep it with Spark; returns N_l, int64 [MAX_ORDER], and the text's digest.

        The digest costs no reading of its own: the tasks compute it in parts. Raises InputError for bad text.
        """
        from pyspark import StorageLevel

        # Elsewhere a path may not be taken from where the command was given.
        paths = [path.absolute() for path in self._text.paths]
        units = split_into_ranges(paths, self._segment_bytes)
        split_unit = _SplitUnit(work, self._text.text_field, self._segment_bytes)
        tasks = self._context.parallelize(units, len(units))
        records = tasks.flatMap(split_unit).persist(StorageLevel.MEMORY_AND_DISK)
        self._segments = records.filter(_is_segment)
        buckets = self._segments.flatMap(_by_bucket)
        self._words = buckets.partitionBy(min(BUCKETS, max(2 * self._cores, len(units))), int).values()
        with progress(self._context, "splitting"), _named_as_given(self._text.paths), one_line_failures():
            summaries = records.mapPartitions(_summary).collect()
        if all(summary.is_blank for summary in summaries):
            raise no_text_error(self._text.paths)
        self.num_segments = sum(summary.segments for summary in summaries)
        self._totals = np.sum([summary.totals for summary in summaries], axis=0)
        digest = TextDigest(paths, self._text.text_field)
        for unit, summary in zip(units, summaries, strict=True):
            digest.add(unit.paths, summary.blocks)
        return self._totals, digest.result()

    def sample(self, segments: int, words: int) -> list[SplitText]:
        units = range(0, self._segments.getNumPartitions(), -(-self._segments.getNumPartitions() // segments))
        return self._context.runJob(self._segments, _FirstSegment(words // len(units)), units)

    def words(self, at_least: int) -> list[Words]:
        with progress(self._context, "words"):
            return self._words.mapPartitions(_MergeWords(at_least)).collect()

    def count(self, stage: CountOrder, thresholds: dict[int, int]) -> Grams:
        shares = max(self._cores, -(-int(self._totals[stage.order - 1]) // MERGED))
        kept = self._context.broadcast(stage)
        entries = self._segments.flatMap(_DealEntries(kept, shares)).partitionBy(shares, int).values()
        merge = _MergeEntries(stage.count_bits, thresholds[stage.order])
        with progress(self._context, f"{stage.order}-grams"):
            merged = entries.mapPartitions(merge).collect()
        kept.destroy()
        keys, counts = (np.concatenate(arrays) for arrays in zip(*merged, strict=True))
        order = np.argsort(keys)
        return Grams(keys[order], counts[order])


@contextmanager
def _named_as_given(paths: list[Path]) -> Iterator[None]:
    """An InputError about an absolute path as one about the path that the user gave."""
    try:
        yield
    except InputError as error:
        message = str(error)
        for path in paths:
            if message.startswith(f"{path.absolute()}:"):
                raise InputError(f"{path}{message.removeprefix(str(path.absolute()))}") from error
        raise


class _UnitRead(NamedTuple):
    """What is known of a unit that has been read.

    blocks: as of RangeReader; segments: how many; totals: N_l in it, int64 [MAX_ORDER].
    """

    blocks: list[bytes]
    segments: int
    is_blank: bool
    totals: Int64s


@dataclass(frozen=True)
class _SplitUnit:
    """A unit of text -> its segments, split, and at last a `_UnitRead`. Raises InputError for bad text."""

    work: Split
    text_field: str
    segment_bytes: int

    def __call__(self, unit: FileRange) -> Iterator[SplitText | _UnitRead]:
        reader = RangeReader(unit, self.text_field)
        totals = np.zeros(MAX_ORDER, np.int64)
        is_blank = True
        segments = 0
        for segment in reader.segments(self.segment_bytes):
            is_blank = is_blank and segment.is_blank
            split = reader.run_with_error_location(self.work, segment)
            totals += split.totals
            segments += 1
            yield split
        yield _UnitRead(reader.block_digests, segments, is_blank, totals)


def _is_segment(record: SplitText | _UnitRead) -> bool:
    return isinstance(record, SplitText)


def _summary(records: Iterable[SplitText | _UnitRead]) -> list[_UnitRead]:
    return [record for record in records if isinstance(record, _UnitRead)]


def _by_bucket(segment: SplitText) -> Iterator[tuple[int, Words]]:
    return ((bucket, segment.words(bucket, bucket + 1)) for bucket in range(BUCKETS))


@dataclass(frozen=True)
class _FirstSegment:
    """The first segment of a unit, with so many words of it."""

    most: int

    def __call__(self, segments: Iterable[SplitText]) -> list[SplitText]:
        # All are gone through: a process that leaves some unread is ended, and the next must compile and import anew.
        return [segment.beginning(self.most) for place, segment in enumerate(segments) if place == 0]


@dataclass(frozen=True)
class _MergeWords:
    """The words of some buckets -> those that occur often enough."""

    at_least: int

    def __call__(self, lists: Iterable[Words]) -> list[Words]:
        return [merged_words(lists, self.at_least)]


@dataclass(frozen=True)
class _DealEntries:
    """A segment -> the entries of its l-grams, in shares."""

    stage: Broadcast[CountOrder]
    shares: int

    def __call__(self, segment: SplitText) -> Iterator[tuple[int, UInt64s]]:
        stage = self.stage.value
        entries, bounds = dealt(stage(segment), stage.count_bits, self.shares)
        return ((share, entries[start:end]) for share, (start, end) in enumerate(pairwise(bounds)) if start < end)


@dataclass(frozen=True)
class _MergeEntries:
    """The entries of a share -> the l-grams that occur often enough."""

    count_bits: int
    at_least: int

    def __call__(self, lists: Iterable[UInt64s]) -> list[Grams]:
        return [merged_entries(list(lists), self.count_bits, self.at_least)]
