"""The stages of counting: what is done with one segment of text, or with one share of all segments' results.

    Split            a segment of text -> its distinct words with their counts, and its words as numbers
    merged_words     some of all segments' words -> those that occur often enough
    CountOrder       a segment's words -> sorted (key, count) entries of its l-grams
    merged_entries   some of all segments' entries -> their sums

They know arrays only. What has them work through a whole text is an engine: counting_local.py, counting_spark.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from reader.lexicon.counting import (
    NO_WORD,
    KeyTable,
    Packing,
    longer_heads,
    ngram_keys,
    occurrences,
    pack_sorted,
    renumbered,
    sum_sorted,
)
from reader.system.atomic_files import mapped_array, save_arrays
from reader.tables.string_table import (
    PackedStrings,
    StringTable,
    empty_table,
    find_or_add_strings,
    find_strings,
    take_strings,
)
from reader.text.text_files import Segment
from reader.tokenization.basic_tokenizer import holds_text
from reader.tokenization.word_index import WordIndex

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
UInt64s = npt.NDArray[np.uint64]

MAX_ORDER = 5
BUCKETS = 64  # that the words of a segment are sorted into, so that all segments' can be merged bucket by bucket


class Words(NamedTuple):
    """Distinct words and how often each occurs, int64 [n]."""

    strings: PackedStrings
    counts: Int64s


class Grams(NamedTuple):
    """L-grams: their keys, ascending, and counts, int64."""

    keys: UInt64s
    counts: Int64s


class SplitText(NamedTuple):
    """A segment of text in words.

    stream: int32, its words as numbers, NO_WORD where an n-gram ends; totals: int64 [MAX_ORDER], N_l.
    offsets, arena: the distinct words, packed (see PackedStrings), bucket by bucket; counts: int64, of each.
    bounds: int64 [BUCKETS + 1], where each bucket's words begin.
    """

    stream: Int32s
    offsets: Int64s
    arena: npt.NDArray[np.uint8]
    counts: Int64s
    bounds: Int64s
    totals: Int64s

    def save(self, folder: Path) -> None:
        """Write it as a folder, whole or not at all."""
        save_arrays(folder, **self._asdict())

    @classmethod
    def load(cls, folder: Path) -> SplitText:
        """What was saved, memory-mapped."""
        return cls(*(mapped_array(folder, name) for name in cls._fields))

    def words(self, first: int = 0, last: int = BUCKETS) -> Words:
        """The words of buckets [first, last)."""
        start, end = self.bounds[first], self.bounds[last]
        offsets = np.array(self.offsets[start : end + 1])
        return Words(
            PackedStrings(offsets - offsets[0], np.array(self.arena[offsets[0] : offsets[-1]])), self.counts[start:end]
        )

    def beginning(self, most: int) -> SplitText:
        """The same with the first `most` words of the stream alone."""
        return self._replace(stream=np.array(self.stream[:most]))


@dataclass(frozen=True)
class Split:
    """A segment of text -> its words. Raises InputError for a bad record, UnicodeDecodeError for what is not UTF-8.

    Attributes:
        lowercase, han: how text is split, see splitting.py.
    """

    lowercase: bool
    han: str

    def __call__(self, segment: Segment) -> SplitText:
        index = WordIndex(self.lowercase, self.han)
        stream = index.encode(segment.text())
        table = index.table
        used = len(index)
        is_text = np.fromiter(map(holds_text, index.words()), bool, used)
        counts = np.bincount(stream[stream >= 0], minlength=used)
        buckets = np.where(
            is_text & (counts > 0), buckets_of(PackedStrings(table.offsets[: used + 1], table.arena)), BUCKETS
        )
        order = np.argsort(buckets, kind="stable")
        order = order[: np.count_nonzero(buckets < BUCKETS)]
        numbers = np.full(used, NO_WORD, np.int32)
        numbers[order] = np.arange(len(order), dtype=np.int32)
        stream = renumbered(stream, numbers)
        words = take_strings(PackedStrings(table.offsets, table.arena), order)
        return SplitText(
            stream=stream,
            offsets=words.offsets,
            arena=words.arena,
            counts=counts[order].astype(np.int64),
            bounds=np.searchsorted(buckets[order], np.arange(BUCKETS + 1)),
            totals=occurrences(stream, MAX_ORDER),
        )


def buckets_of(strings: PackedStrings) -> Int64s:
    """A bucket for every string, by its first and last bytes and its length: alike in all segments."""
    offsets, arena = strings
    sizes = np.diff(offsets)
    first, last = arena[offsets[:-1]].astype(np.int64), arena[offsets[1:] - 1].astype(np.int64)
    return np.asarray((first * 31 + last * 7 + sizes) % BUCKETS, np.int64)


def merged_words(lists: Iterable[Words], at_least: int) -> Words:
    """The words of several lists that occur so often in all of them together."""
    table = empty_table()
    counts = np.zeros(0, np.int64)
    for strings, found in lists:
        table, numbers = find_or_add_strings(table, strings)
        counts = np.concatenate([counts, np.zeros(int(table.used[0]) - len(counts), np.int64)])
        counts[numbers] += found
    kept = np.flatnonzero(counts >= at_least)
    return Words(take_strings(PackedStrings(table.offsets[: len(counts) + 1], table.arena), kept), counts[kept])


@dataclass(frozen=True)
class CountOrder:
    """A segment's words -> the sorted, packed entries of its l-grams, uint64.

    Attributes:
        order: l; words: the words that were kept.
        tables: of the keys of orders 2 to l - 1 that were kept; packings: of the keys of orders 2 to l.
    """

    order: int
    words: StringTable
    tables: list[KeyTable]
    packings: list[Packing]

    def __call__(self, text: SplitText) -> UInt64s:
        numbers = find_strings(self.words, PackedStrings(np.array(text.offsets), np.array(text.arena)))
        words = renumbered(np.array(text.stream), numbers)
        heads = words
        for order, (table, bits) in enumerate(zip(self.tables, self.packings, strict=False), start=2):
            heads = longer_heads(heads, words, order, bits.word_bits, table)
        keys = ngram_keys(heads, words, self.order, self.packings[-1].word_bits)
        keys.sort()
        return pack_sorted(keys, self.count_bits)

    @property
    def count_bits(self) -> int:
        return self.packings[-1].count_bits


def merged_entries(sorted_lists: list[UInt64s], count_bits: int, at_least: int) -> Grams:
    """The l-grams of some lists of packed entries that occur so often in all of them together."""
    joined = np.concatenate([np.zeros(0, np.uint64), *sorted_lists])
    joined.sort()
    return Grams(*sum_sorted(joined, count_bits, at_least))
