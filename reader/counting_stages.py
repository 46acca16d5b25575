"""The stages of counting: what one process does with one segment of text, or with one range of all segments' results.

    Split       a segment of text -> its distinct words with their counts, and its words as numbers
    MergeWords  some of all segments' words -> those that occur often enough
    CountOrder  a segment -> sorted (key, count) entries of its l-grams
    MergeOrder  a range of keys of all segments' entries -> their sums

What the first and the third find is written, whole or not at all, as folders of .npy files.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from reader.atomic import load_array, mapped_array, save_arrays
from reader.byte_table import ByteTable, Strings, chosen, empty_table, number
from reader.counting import (
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
from reader.splitting import WordIndex
from reader.text import Segment
from reader.tokenization import holds_text

Int64s = npt.NDArray[np.int64]
UInt64s = npt.NDArray[np.uint64]

MAX_ORDER = 5
BUCKETS = 64  # that the words of a segment are sorted into, so that all segments' can be merged bucket by bucket


class Grams(NamedTuple):
    """L-grams: their keys, ascending, and counts, int64."""

    keys: UInt64s
    counts: Int64s


@dataclass(frozen=True)
class Split:
    """A segment of text -> its folder.

    stream: int32, its words as numbers, NO_WORD where an n-gram ends; totals: int64 [MAX_ORDER], N_l.
    offsets, arena: the distinct words, packed (see byte_table.Strings), bucket by bucket; counts: int64, of each.
    bounds: int64 [BUCKETS + 1], where each bucket's words begin.

    Attributes:
        lowercase, han: how text is split, see splitting.py.
    """

    lowercase: bool
    han: str

    def __call__(self, segment: Segment, folder: Path) -> None:
        index = WordIndex(self.lowercase, self.han)
        stream = index.encode(segment.text())
        table = index.table
        used = len(index)
        is_text = np.fromiter(map(holds_text, index.words()), bool, used)
        counts = np.bincount(stream[stream >= 0], minlength=used)
        buckets = np.where(is_text & (counts > 0), _buckets(table.offsets[: used + 1], table.arena), BUCKETS)
        order = np.argsort(buckets, kind="stable")
        order = order[: np.count_nonzero(buckets < BUCKETS)]
        numbers = np.full(used, NO_WORD, np.int32)
        numbers[order] = np.arange(len(order), dtype=np.int32)
        stream = renumbered(stream, numbers)
        words = chosen(Strings(table.offsets, table.arena), order)
        save_arrays(
            folder,
            stream=stream,
            offsets=words.offsets,
            arena=words.arena,
            counts=counts[order].astype(np.int64),
            bounds=np.searchsorted(buckets[order], np.arange(BUCKETS + 1)),
            totals=occurrences(stream, MAX_ORDER),
        )


def _buckets(offsets: Int64s, arena: npt.NDArray[np.uint8]) -> Int64s:
    """A bucket for every string, by its first and last bytes and its length: alike in all segments."""
    sizes = np.diff(offsets)
    first, last = arena[offsets[:-1]].astype(np.int64), arena[offsets[1:] - 1].astype(np.int64)
    return np.asarray((first * 31 + last * 7 + sizes) % BUCKETS, np.int64)


@dataclass(frozen=True)
class MergeWords:
    """Buckets [first, last) of all segments' words -> those that occur often enough, with their counts."""

    segments: list[Path]
    at_least: int

    def __call__(self, buckets: tuple[int, int]) -> tuple[Strings, Int64s]:
        table = empty_table()
        counts = np.zeros(0, np.int64)
        for segment in self.segments:
            first, last = load_array(segment, "bounds")[list(buckets)]
            offsets = load_array(segment, "offsets", first, last + 1)
            arena = load_array(segment, "arena", offsets[0], offsets[-1])
            table, numbers = number(table, Strings(offsets - offsets[0], arena))
            counts = np.concatenate([counts, np.zeros(int(table.used[0]) - len(counts), np.int64)])
            counts[numbers] += load_array(segment, "counts", first, last)
        kept = np.flatnonzero(counts >= self.at_least)
        return chosen(Strings(table.offsets[: len(counts) + 1], table.arena), kept), counts[kept]


@dataclass(frozen=True)
class CountOrder:
    """A segment, by number -> its folder, with `packed`, the sorted entries of its l-grams.

    Attributes:
        folder: for the folders; segments: those of `Split`.
        order: l; words: the words that were kept.
        tables: of the keys of orders 2 to l - 1 that were kept; packings: of the keys of orders 2 to l.
    """

    folder: Path
    segments: list[Path]
    order: int
    words: ByteTable
    tables: list[KeyTable]
    packings: list[Packing]

    def __call__(self, segment: int) -> None:
        target = self.folder / f"{segment}"
        if target.is_dir():
            return
        keys = self.keys(self.segments[segment])
        keys.sort()
        save_arrays(target, packed=pack_sorted(keys, self.packings[-1].count_bits))

    def keys(self, folder: Path, most: int | None = None) -> UInt64s:
        """The keys of a segment's l-grams, or of those in its first `most` words."""
        strings = Strings(load_array(folder, "offsets"), load_array(folder, "arena"))
        numbers = number(self.words, strings, add=False)[1]
        words = renumbered(load_array(folder, "stream", 0, most), numbers)
        heads = words
        for order, (table, bits) in enumerate(zip(self.tables, self.packings, strict=False), start=2):
            heads = longer_heads(heads, words, order, bits.word_bits, table)
        return ngram_keys(heads, words, self.order, self.packings[-1].word_bits)


@dataclass(frozen=True)
class MergeOrder:
    """A range of packed entries, [low, high) -> the l-grams in it that occur often enough in all segments together."""

    parts: list[Path]
    count_bits: int
    at_least: int

    def __call__(self, bounds: tuple[int, int]) -> Grams:
        low, high = np.array(bounds, np.uint64)
        slices = []
        for part in self.parts:
            first, last = np.searchsorted(mapped_array(part, "packed"), (low, high))
            slices.append(load_array(part, "packed", first, last))
        joined = np.concatenate(slices)
        joined.sort()
        return Grams(*sum_sorted(joined, self.count_bits, self.at_least))
