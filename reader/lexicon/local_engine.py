"""Counting with processes on this machine, in bounded memory. A stopped job can be resumed.

The finished result of every segment is a folder of .npy files in a work folder (see output_files.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from reader.lexicon.counting_stages import (
    NUM_BUCKETS,
    CountNgrams,
    NgramCounts,
    SegmentWords,
    WordCounts,
    merge_words,
    split_segment,
)
from reader.lexicon.ngram_keys import merge_entries
from reader.system.arrays import Int64s, UInt64s
from reader.system.atomic_files import mapped_array, remove_folder, save_arrays
from reader.system.processes import Result, Task, ordered_map
from reader.system.progress import progress
from reader.text.map_segments import Resources, map_segments
from reader.text.text_files import Segment, TextFiles
from reader.tokenization.word_index import WordIndex


class LocalEngine:
    """Applies the stages of counting_stages.py to all segments of one text.

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
