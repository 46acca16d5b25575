"""The stages of counting. Each processes one segment of text, or one part of the results of all segments.

    split_segment       a segment of text -> its distinct words with counts, and its text as word IDs
    merge_words         word counts of all segments -> the words that reach a minimum count
    CountNgrams         the words of a segment -> sorted (key, count) entries of its l-grams
    merge_entries       entries of all segments -> the l-grams that reach a minimum count

The stages see arrays only. An engine applies them to a whole text: see local_engine.py and spark_engine.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from reader.lexicon.ngram_keys import (
    NO_WORD,
    KeyLayout,
    count_runs,
    extend_prefixes,
    ngram_keys,
    ngram_totals,
    renumber,
)
from reader.system.arrays import Int32s, Int64s, UInt8s, UInt64s
from reader.system.atomic_files import mapped_array, save_arrays
from reader.system.hash_tables import (
    KeyTable,
    PackedStrings,
    StringTable,
    empty_table,
    find_or_add_strings,
    find_strings,
    take_strings,
)
from reader.text.text_files import Segment, text_of
from reader.tokenization.basic_tokenizer import holds_text
from reader.tokenization.word_index import WordIndex

MAX_ORDER = 5
NUM_BUCKETS = 64  # the words of each segment are grouped by bucket, so that segments can be merged bucket by bucket


class WordCounts(NamedTuple):
    """Distinct words and their counts, int64 [n]."""

    strings: PackedStrings
    counts: Int64s


class NgramCounts(NamedTuple):
    """Keys of distinct l-grams, uint64 [n] in ascending order, and their counts, int64 [n]."""

    keys: UInt64s
    counts: Int64s


class SegmentWords(NamedTuple):
    """A segment of text, split into words.

    stream: int32, the word IDs in text order; NO_WORD where no n-gram may continue.
    offsets, arena: the distinct words (see PackedStrings), grouped by bucket; counts: int64, count of each.
    bounds: int64 [NUM_BUCKETS + 1], where the words of each bucket begin.
    totals: int64 [MAX_ORDER], N_l of the segment.
    """

    stream: Int32s
    offsets: Int64s
    arena: UInt8s
    counts: Int64s
    bounds: Int64s
    totals: Int64s

    def save(self, folder: Path) -> None:
        """Write the arrays into a folder that appears complete or not at all."""
        save_arrays(folder, **self._asdict())

    @classmethod
    def load(cls, folder: Path) -> SegmentWords:
        """Return what `save` wrote, memory-mapped."""
        return cls(*(mapped_array(folder, name) for name in cls._fields))

    def words(self, bucket: int) -> WordCounts:
        """Return the words of a bucket."""
        start, end = self.bounds[bucket], self.bounds[bucket + 1]
        strings = take_strings(PackedStrings(self.offsets[start : end + 1], self.arena), np.arange(end - start))
        return WordCounts(strings, self.counts[start:end])


def split_segment(lowercase: bool, segmenter: str, segment: Segment) -> SegmentWords:
    """Split a segment of text into words.

    Raises InputError for invalid text (see text_of).

    Args:
        lowercase, segmenter: how text is split (see word_index.py and basic_tokenizer.py).
    """
    index = WordIndex(lowercase, segmenter)
    stream = index.encode(text_of(segment))
    strings, num_words = index.table.strings, len(index)
    is_text = np.fromiter(map(holds_text, index.words()), bool, num_words)
    counts = np.bincount(stream[stream >= 0], minlength=num_words)
    all_buckets = assign_buckets(strings)
    buckets = np.where(is_text & (counts > 0), all_buckets, NUM_BUCKETS)
    order = np.argsort(buckets, kind="stable")
    order = order[: np.count_nonzero(buckets < NUM_BUCKETS)]
    new_ids = np.full(num_words, NO_WORD, np.int32)
    new_ids[order] = np.arange(len(order), dtype=np.int32)
    stream = renumber(stream, new_ids)
    words = take_strings(strings, order)
    return SegmentWords(
        stream=stream,
        offsets=words.offsets,
        arena=words.arena,
        counts=counts[order].astype(np.int64),
        bounds=np.searchsorted(buckets[order], np.arange(NUM_BUCKETS + 1)),
        totals=ngram_totals(stream, MAX_ORDER),
    )


def assign_buckets(strings: PackedStrings) -> Int64s:
    """Return the bucket of every string, int64 [n].

    It depends on the string's first byte, last byte and length only, so a word has the same bucket in all segments.
    """
    offsets, arena = strings
    sizes = np.diff(offsets)
    first, last = arena[offsets[:-1]].astype(np.int64), arena[offsets[1:] - 1].astype(np.int64)
    return np.asarray((first * 31 + last * 7 + sizes) % NUM_BUCKETS, np.int64)


def merge_words(lists: Iterable[WordCounts], min_count: int) -> WordCounts:
    """Return the words whose counts, summed over all lists, reach `min_count`."""
    table = empty_table()
    counts = np.zeros(0, np.int64)
    for strings, list_counts in lists:
        table, word_ids = find_or_add_strings(table, strings)
        counts = np.concatenate([counts, np.zeros(int(table.used[0]) - len(counts), np.int64)])
        counts[word_ids] += list_counts
    kept = np.flatnonzero(counts >= min_count)
    return WordCounts(take_strings(table.strings, kept), counts[kept])


@dataclass(frozen=True)
class CountNgrams:
    """Callable that returns the entries of a segment's l-grams, uint64, sorted.

    Attributes:
        order: l.
        words: hash table of the kept words.
        tables: hash tables of the keys of the kept l-grams, for orders 2 to l - 1.
        layouts: key layouts of orders 2 to l.
    """

    order: int
    words: StringTable
    tables: list[KeyTable]
    layouts: list[KeyLayout]

    def __call__(self, segment: SegmentWords) -> UInt64s:
        new_ids = find_strings(self.words, PackedStrings(np.array(segment.offsets), np.array(segment.arena)))
        words = renumber(np.array(segment.stream), new_ids)
        prefixes = words
        # There is one layout more than tables: the last one is for the l-grams to be counted.
        for order, (table, layout) in enumerate(zip(self.tables, self.layouts, strict=False), start=2):
            prefixes = extend_prefixes(prefixes, words, order, layout.word_bits, table)
        keys = ngram_keys(prefixes, words, self.order, self.layouts[-1].word_bits)
        keys.sort()
        return count_runs(keys, self.count_bits)

    @property
    def count_bits(self) -> int:
        return self.layouts[-1].count_bits
