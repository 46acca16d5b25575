"""Counting by the processes of this machine, in bounded memory; stopped, it can go on.

What is finished of every segment lies as a folder of .npy files in a work folder (see work_folder.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from tqdm import tqdm

from reader.lexicon.counting_stages import (
    BUCKETS,
    CountOrder,
    Grams,
    Split,
    SplitText,
    Words,
    buckets_of,
    merged_entries,
    merged_words,
)
from reader.system.atomic_files import load_array, mapped_array, remove_folder, save_arrays
from reader.system.process_pool import ordered_map
from reader.tables.string_table import take_strings
from reader.text.map_segments import Resources, map_segments
from reader.text.text_files import Segment, TextFiles
from reader.tokenization.word_index import WordIndex

Int64s = npt.NDArray[np.int64]


class LocalEngine:
    """The stages over one text (see counting_job.Engine).

    Attributes:
        segments: the folders of the segments, once the text is split.
    """

    def __init__(self, text: TextFiles, resources: Resources, folder: Path) -> None:
        """`folder` is for what is finished."""
        self._text, self._resources, self._folder = text, resources, folder
        self.segments: list[Path] = []

    def split(self, work: Split) -> tuple[Int64s, str]:
        """Every segment of the text -> its folder; returns N_l, int64 [MAX_ORDER], and the text's digest."""
        folder, warm_up = self._folder / "split", WordIndex(work.lowercase, work.han).encode
        to_folder = _ToFolder(work)
        self.segments, digest = map_segments(to_folder, self._text, folder, self._resources, "splitting", warm_up)
        return np.sum([load_array(segment, "totals") for segment in self.segments], axis=0), digest

    def sample(self, segments: int, words: int) -> list[SplitText]:
        chosen = self.segments[:: -(-len(self.segments) // segments)]
        return [SplitText.load(segment).beginning(words // len(chosen)) for segment in chosen]

    def words(self, at_least: int) -> list[Words]:
        size = sum(len(mapped_array(each, "arena")) + 24 * len(mapped_array(each, "counts")) for each in self.segments)
        shares = 1
        while shares < BUCKETS and size > 4 * self._resources.max_merge_entries * shares:
            shares *= 2
        step = BUCKETS // shares
        ranges = [(start, start + step) for start in range(0, BUCKETS, step)]
        merge = _MergeWords(self.segments, at_least)
        return list(ordered_map(merge, ranges, min(self._resources.workers, shares)))

    def count(self, stage: CountOrder, thresholds: dict[int, int]) -> Grams:
        # Keys depend on what was kept of shorter n-grams.
        kept = "_".join(str(thresholds[shorter]) for shorter in range(1, stage.order))
        folder = self._folder / f"order_{stage.order}_of_{kept}"
        for old in self._folder.glob(f"order_{stage.order}_of_*"):
            if old != folder:
                remove_folder(old)
        folder.mkdir(exist_ok=True)
        parts = [folder / f"{place}" for place in range(len(self.segments))]
        tasks = list(zip(self.segments, parts, strict=True))
        with tqdm(total=len(tasks), unit=" segments", desc=f"{stage.order}-grams", mininterval=0.5) as bar:
            for _ in ordered_map(_EntriesToFolder(stage), tasks, min(self._resources.workers, len(tasks))):
                bar.update()
        bounds = self._ranges(parts, stage.count_bits)
        merge = _MergeEntries(parts, stage.count_bits, thresholds[stage.order])
        merged = ordered_map(merge, bounds, min(self._resources.workers, len(bounds)))
        return Grams(*(np.concatenate(arrays) for arrays in zip(*merged, strict=True)))

    def _ranges(self, parts: list[Path], count_bits: int) -> list[tuple[int, int]]:
        """Ranges of packed entries, each of few enough to be merged at once."""
        total = sum(len(mapped_array(part, "packed")) for part in parts)
        wanted = max(self._resources.workers if total > 1 << 20 else 1, -(-total // self._resources.max_merge_entries))
        step = max(1, total // (256 * wanted))
        sample = np.sort(np.concatenate([load_array(part, "packed")[::step] for part in parts]))
        cuts = sample[[len(sample) * i // wanted for i in range(1, wanted)]] if len(sample) else sample
        # A range begins with the first entry of a key, whatever its count.
        starts = sorted({0, *(int(cut) >> count_bits << count_bits for cut in cuts)})
        return list(zip(starts, [*starts[1:], (1 << 64) - 1], strict=True))


@dataclass(frozen=True)
class _ToFolder:
    """A segment of text -> its folder, a `SplitText`."""

    work: Callable[[Segment], SplitText]

    def __call__(self, segment: Segment, folder: Path) -> None:
        self.work(segment).save(folder)


@dataclass(frozen=True)
class _MergeWords:
    """Buckets [first, last) of all segments' words -> those that occur often enough, bucket by bucket.

    So they come in the same order however the buckets are shared out: what is counted of longer n-grams knows words by
    their places, and may be taken up with other --memory and --workers.
    """

    segments: list[Path]
    at_least: int

    def __call__(self, buckets: tuple[int, int]) -> Words:
        found = merged_words((SplitText.load(segment).words(*buckets) for segment in self.segments), self.at_least)
        order = np.argsort(buckets_of(found.strings), kind="stable")
        return Words(take_strings(found.strings, order), found.counts[order])


@dataclass(frozen=True)
class _EntriesToFolder:
    """A segment's folder -> a folder with `packed`, the sorted entries of its l-grams, unless it is there already."""

    stage: CountOrder

    def __call__(self, task: tuple[Path, Path]) -> None:
        segment, target = task
        if not target.is_dir():
            save_arrays(target, packed=self.stage(SplitText.load(segment)))


@dataclass(frozen=True)
class _MergeEntries:
    """A range of packed entries, [low, high) -> the l-grams in it that occur often enough in all segments together."""

    parts: list[Path]
    count_bits: int
    at_least: int

    def __call__(self, bounds: tuple[int, int]) -> Grams:
        low, high = np.array(bounds, np.uint64)
        slices = []
        for part in self.parts:
            # A copy: what stays mapped stays in memory.
            first, last = np.searchsorted(mapped_array(part, "packed"), (low, high))
            slices.append(load_array(part, "packed", first, last))
        return merged_entries(slices, self.count_bits, self.at_least)
