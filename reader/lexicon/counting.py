"""The stages of counting, and their application to a whole text with processes on this machine, in bounded memory.

    split_segment       a segment of text -> its distinct words with counts, and its text as word IDs
    merge_words         word counts of all segments -> the words that reach a minimum count
    CountNgrams         the words of a segment -> sorted (key, count) entries of its l-grams
    merge_entries       entries of all segments -> the l-grams that reach a minimum count

Each stage processes one segment, or one part of the results of all segments. The finished result of every segment is a
folder of .npy files in a work folder (see output_files.py), so that a stopped job can be resumed. spark_engine.py
applies the stages on a cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from reader.lexicon.ngram_keys import (
    NO_WORD,
    KeyLayout,
    count_runs,
    extend_prefixes,
    merge_entries,
    ngram_keys,
    ngram_totals,
    renumber,
)
from reader.system.arrays import Int32s, Int64s, UInt8s, UInt64s
from reader.system.atomic_files import mapped_array, remove_folder, save_arrays
from reader.system.hash_tables import (
    KeyTable,
    PackedStrings,
    StringTable,
    empty_table,
    find_or_add_strings,
    find_strings,
    take_strings,
)
from reader.system.processes import Result, Task, ordered_map
from reader.system.progress import progress
from reader.text.map_segments import Resources, map_segments
from reader.text.text_files import Segment, TextFiles, text_of
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


class LocalEngine:
    """Applies the stages to all segments of one text, with processes on this machine.

    Attributes, once the text is split:
        segments: the folders of the segments.
        totals: N_l, int64 [MAX_ORDER].
        digest: that of the text.
    """

    totals: Int64s
    digest: str

    def __init__(self, text: TextFiles, resources: Resources, folder: Path) -> None:
        """`folder` is the work folder for finished results."""
        self._text, self._resources, self._folder = text, resources, folder
        self.segments: list[Path] = []

    def split(self, lowercase: bool, segmenter: str) -> None:
        """Split every segment of the text and save it; see `split_segment`. Raises InputError for invalid text."""
        folder = self._folder / "split"
        folder.mkdir(exist_ok=True)
        self.segments = self._split(lowercase, segmenter, folder)
        self.digest = self._text.digest
        self.totals = np.sum([mapped_array(segment, "totals") for segment in self.segments], axis=0)

    def words(self, min_count: int) -> list[WordCounts]:
        """Return the words that occur at least `min_count` times in the text, each in exactly one of the lists."""
        return list(self._map(partial(_merge_bucket, self.segments, min_count), range(NUM_BUCKETS), "merging words"))

    def count(self, stage: CountNgrams, thresholds: dict[int, int]) -> NgramCounts:
        """Return the l-grams that occur at least thresholds[l] times, where l is the order of the stage.

        `thresholds` also holds the thresholds of the shorter orders, by which `stage` was pruned.
        """
        # Keys contain IDs of kept shorter n-grams, so entries are valid only for these thresholds.
        kept = "_".join(str(thresholds[shorter]) for shorter in range(1, stage.order))
        folder = self._folder / f"order_{stage.order}_of_{kept}"
        for old in self._folder.glob(f"order_{stage.order}_of_*"):
            if old != folder:
                remove_folder(old)
        folder.mkdir(exist_ok=True)
        parts = [folder / f"{index}" for index in range(len(self.segments))]
        tasks = list(zip(self.segments, parts, strict=True))
        list(self._map(partial(_save_entries, stage), tasks, f"counting {stage.order}-grams"))
        merge = partial(_merge_entries, parts, stage.count_bits, thresholds[stage.order])
        merged = self._map(merge, self._entry_ranges(parts, stage.count_bits), f"merging {stage.order}-grams")
        return NgramCounts(*(np.concatenate(arrays) for arrays in zip(*merged, strict=True)))

    def _split(self, lowercase: bool, segmenter: str, folder: Path) -> list[Path]:
        """Split the text into words; return the folders of the segments, in `folder`."""
        warm_up = WordIndex(lowercase, segmenter).encode

        def save_words(segment: Segment, folder: Path) -> None:
            split_segment(lowercase, segmenter, segment).save(folder)

        return map_segments(save_words, self._text, folder, self._resources, "splitting", warm_up)

    def _map(self, function: Callable[[Task], Result], tasks: Sequence[Task], what: str) -> Iterable[Result]:
        """Yield function(task) for every task, in order; `what` is being done, for the display of progress."""
        with progress(what, len(tasks), " parts") as bar:
            for result in ordered_map(function, tasks, min(self._resources.workers, len(self.segments))):
                bar.update(1)
                yield result

    def _entry_ranges(self, parts: list[Path], count_bits: int) -> list[tuple[int, int]]:
        """Return ranges of entry values, [start, stop), each with few enough entries to be merged in memory."""
        total = sum(len(mapped_array(part, "entries")) for part in parts)
        num_ranges = max(
            self._resources.workers if total > 1 << 20 else 1, -(-total // self._resources.max_merge_entries)
        )
        step = max(1, total // (256 * num_ranges))
        # Copies of parts of the mapped arrays: all of the entries would not fit into the memory.
        sample = np.sort(np.concatenate([np.array(mapped_array(part, "entries")[::step]) for part in parts]))
        cuts = sample[[len(sample) * i // num_ranges for i in range(1, num_ranges)]] if len(sample) else sample
        # A range begins with the smallest entry of a key, so that all entries of a key are in the same range.
        starts = sorted({0, *(int(cut) >> count_bits << count_bits for cut in cuts)})
        return list(zip(starts, [*starts[1:], (1 << 64) - 1], strict=True))


def _merge_bucket(segments: list[Path], min_count: int, bucket: int) -> WordCounts:
    """Merge the words of a bucket of all segments."""
    return merge_words((SegmentWords.load(segment).words(bucket) for segment in segments), min_count)


def _save_entries(stage: CountNgrams, task: tuple[Path, Path]) -> None:
    """Save the entries of a segment's l-grams as a folder, unless the folder exists."""
    segment, target = task
    if not target.is_dir():
        save_arrays(target, entries=stage(SegmentWords.load(segment)))


def _merge_entries(parts: list[Path], count_bits: int, min_count: int, entry_range: tuple[int, int]) -> NgramCounts:
    """Merge the entries in [start, stop) of all segments, without the l-grams below `min_count`."""
    start, stop = np.array(entry_range, np.uint64)
    slices: list[UInt64s] = []
    for part in parts:
        # A copy of the slice: pages of a mapped array stay in memory as long as the array exists.
        first, last = np.searchsorted(mapped_array(part, "entries"), (start, stop))
        slices.append(np.array(mapped_array(part, "entries")[first:last]))
    entries = np.concatenate(slices)
    entries.sort()
    return NgramCounts(*merge_entries(entries, count_bits, min_count))
