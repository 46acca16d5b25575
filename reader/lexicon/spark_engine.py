"""Counting with Spark, for text that is too large for one machine to count in acceptable time.

The driver and all executors see the same storage. The stages are those of the local engine, connected by shuffles:

    groups of files -> segments split into words, kept on the executor that made them (or recomputed if lost)
    words of all segments, by bucket -> words that reach the minimum count -> driver -> all executors
    entries of all segments, by a hash of the key -> l-grams that reach the minimum count -> driver -> all executors

A file is read by one task, as a stream; the size of the other tasks is bounded for any size of the text. The driver
receives only kept words and l-grams.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from reader.lexicon.counting_stages import (
    MAX_ORDER,
    NUM_BUCKETS,
    CountNgrams,
    NgramCounts,
    SegmentWords,
    WordCounts,
    merge_entry_lists,
    merge_words,
    split_segment,
)
from reader.lexicon.ngram_keys import partition_by_hash
from reader.system.arrays import Int64s, UInt64s
from reader.text.input_files import shard_files
from reader.text.text_files import Segment, TextFiles, digest_of

if TYPE_CHECKING:
    from pyspark import RDD, Broadcast, SparkContext


# Bytes of text per segment. The limits are lower than those of the local engine, because the Java process holds a few
# segments per core at a time, in a heap that is 1 GB by default.
MIN_SEGMENT_BYTES, MAX_SEGMENT_BYTES = 1 << 20, 16 << 20
# L-gram occurrences per merge task; a task needs about 20 bytes of memory for each distinct l-gram.
NGRAMS_PER_MERGE = 1 << 24


class SparkEngine:
    """Applies the counting stages to one text (see extraction.Engine)."""

    def __init__(self, context: SparkContext, text: TextFiles) -> None:
        self._context, self._text = context, text
        self._cores = context.defaultParallelism
        self._segment_bytes = max(MIN_SEGMENT_BYTES, min(MAX_SEGMENT_BYTES, text.size // (2 * self._cores)))
        self._totals = np.zeros(MAX_ORDER, np.int64)
        self._segments: RDD[Any] = context.emptyRDD()
        self._words: RDD[Any] = context.emptyRDD()

    def split(self, lowercase: bool, segmenter: str) -> tuple[Int64s, str]:
        """Split the text and persist it in Spark; return N_l, int64 [MAX_ORDER], and the digest of the text.

        The digest needs no second reading: the tasks that split the text also compute its parts. Raises InputError
        for invalid text.
        """
        from pyspark import StorageLevel

        # The working directory of an executor may differ from that of the driver.
        paths = [path.absolute() for path in self._text.paths]
        num_groups = min(len(paths), 1 + self._text.text_size // self._segment_bytes)
        groups = shard_files(paths, num_groups)
        split = partial(split_segment, lowercase, segmenter)
        split_files = partial(_split_files, split, self._text.text_field, self._segment_bytes)
        tasks = self._context.parallelize(groups, num_groups)
        records = tasks.flatMap(split_files).persist(StorageLevel.MEMORY_AND_DISK)
        self._segments = records.filter(lambda record: isinstance(record, SegmentWords))
        buckets = self._segments.flatMap(
            lambda segment: ((bucket, segment.words(bucket)) for bucket in range(NUM_BUCKETS))
        )
        num_partitions = min(NUM_BUCKETS, max(2 * self._cores, num_groups))
        self._words = buckets.partitionBy(num_partitions, int).values()
        summaries = records.filter(lambda record: isinstance(record, _GroupSummary)).collect()
        self._totals = np.sum([summary.totals for summary in summaries], axis=0)
        file_digests = (digest for summary in summaries for digest in summary.file_digests)
        return self._totals, digest_of(paths, self._text.text_field, file_digests)

    def words(self, min_count: int) -> list[WordCounts]:
        return self._words.mapPartitions(lambda lists: [merge_words(lists, min_count)]).collect()

    def count(self, stage: CountNgrams, thresholds: dict[int, int]) -> NgramCounts:
        num_partitions = max(self._cores, -(-int(self._totals[stage.order - 1]) // NGRAMS_PER_MERGE))
        broadcast = self._context.broadcast(stage)
        partitioned = self._segments.flatMap(partial(_partition_entries, broadcast, num_partitions))
        entries = partitioned.partitionBy(num_partitions, int).values()
        count_bits, min_count = stage.count_bits, thresholds[stage.order]
        merged = entries.mapPartitions(lambda lists: [merge_entry_lists(list(lists), count_bits, min_count)]).collect()
        broadcast.destroy()
        keys, counts = (np.concatenate(arrays) for arrays in zip(*merged, strict=True))
        order = np.argsort(keys)
        return NgramCounts(keys[order], counts[order])


class _GroupSummary(NamedTuple):
    """Results of reading a group of files: TextFiles.file_digests, and N_l, int64 [MAX_ORDER]."""

    file_digests: list[bytes]
    totals: Int64s


def _split_files(
    split: Callable[[Segment], SegmentWords], text_field: str, segment_bytes: int, paths: list[Path]
) -> Iterator[SegmentWords | _GroupSummary]:
    """Yield the segments of a group of files, split into words, and then one summary; raises InputError."""
    text = TextFiles(paths, text_field)
    totals = np.zeros(MAX_ORDER, np.int64)
    for segment in text.segments(segment_bytes):
        words = split(segment)
        totals += words.totals
        yield words
    yield _GroupSummary(text.file_digests, totals)


def _partition_entries(
    broadcast: Broadcast[CountNgrams], num_partitions: int, segment: SegmentWords
) -> Iterator[tuple[int, UInt64s]]:
    """Yield the entries of a segment's l-grams, grouped by partition."""
    stage = broadcast.value
    entries, bounds = partition_by_hash(stage(segment), stage.count_bits, num_partitions)
    for partition, (start, end) in enumerate(pairwise(bounds)):
        if start < end:
            yield partition, entries[start:end]
