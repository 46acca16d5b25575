"""Counting the n-grams of a text of any size, exactly.

First all text is split into words, then its l-grams are counted, order by order, by an engine: by the processes of this
machine (counting_local.py) or by Spark (counting_spark.py).
Only those that occur T_l times or more are kept: a longer n-gram that is as frequent holds no rarer word or n-gram. T_l
is guessed from a sample, and proved in the end: if an l-gram that is rarer could have had a place among the
best, T_l is lowered and the counting repeated.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from reader.lexicon.candidates import Kept, Scores, frequent_first
from reader.lexicon.counting import kth_largest, needed_count, occurrences
from reader.lexicon.counting_stages import (
    MAX_ORDER,
    CountOrder,
    Grams,
    Split,
    SplitText,
    Words,
    merged_entries,
    merged_words,
)
from reader.lexicon.ngrams import NO_NGRAMS, NGrams

Int64s = npt.NDArray[np.int64]
Float64s = npt.NDArray[np.float64]

SAMPLE_WORDS, SAMPLE_SEGMENTS = 1 << 21, 4
SAMPLE_TRUSTED = 4  # the least square of a score in the sample that says something about the whole


@dataclass(frozen=True)
class Settings:
    """What is to be counted.

    Attributes:
        lowercase, han: how text is split into words, see splitting.py.
        top: order l -> k_l, how many are to be kept; order 1 stands for words of several Han characters, by count.
        thresholds: order l -> the T_l to begin with, in place of a guess.
    """

    lowercase: bool
    han: str
    top: dict[int, int]
    thresholds: dict[int, int]


@dataclass(frozen=True)
class Counted:
    """The result: the best of each order, best first; N_l of every order; the digest of the text."""

    best: NGrams
    totals: dict[int, int]
    text: str


class Engine(Protocol):
    """What takes the stages of counting_stages.py through all segments of one text."""

    def split(self, work: Split) -> tuple[Int64s, str]:
        """Split the text, and keep it so; returns N_l, int64 [MAX_ORDER], and the text's digest.

        Raises InputError for bad text.
        """

    def sample(self, segments: int, words: int) -> list[SplitText]:
        """The beginnings of some segments from all over the text, of at most `words` words together."""

    def words(self, at_least: int) -> list[Words]:
        """The words that occur at least so often, each in one of the lists."""

    def count(self, stage: CountOrder, thresholds: dict[int, int]) -> Grams:
        """The l-grams that occur at least thresholds[l] times; of shorter ones so many were asked for."""


class CountingJob:
    """The way from a text to its best n-grams."""

    def __init__(self, engine: Engine, settings: Settings, say: Callable[[str], Any]) -> None:
        """`say` takes messages for the user."""
        self.engine, self.settings, self.say = engine, settings, say
        self.totals = np.zeros(MAX_ORDER, np.int64)

    def run(self) -> Counted:
        """Count. Raises InputError for bad text, and where the disk or the system refuses."""
        self.totals, digest = self.engine.split(Split(self.settings.lowercase, self.settings.han))
        thresholds = self._guesses() | self.settings.thresholds
        while True:
            best, lowered = self._best(thresholds)
            if not lowered:
                break
            for order, count in lowered.items():
                self.say(
                    f"order {order}: n-grams that occur fewer than {thresholds[order]:,} times may be among the best; "
                    f"counting again, from {count:,} times on"
                )
            thresholds |= lowered
        orders = range(1, max(self.settings.top) + 1)
        return Counted(best, {order: int(self.totals[order - 1]) for order in orders}, digest)

    def _guesses(self) -> dict[int, int]:
        """T_l for every order, by the beginnings of a few segments."""
        samples = self.engine.sample(SAMPLE_SEGMENTS, SAMPLE_WORDS)
        kept = Kept(merged_words((sample.words() for sample in samples), 1))
        totals = np.sum([occurrences(sample.stream, MAX_ORDER) for sample in samples], axis=0)
        # Words were counted in the whole of the segments.
        totals[0] = kept.vocabulary.counts.sum()
        found: dict[int, int] = {}
        for order in range(1, max(self.settings.top) + 1):
            if order > 1:
                stage = kept.next_stage()
                kept.add(stage, merged_entries([stage(sample) for sample in samples], stage.count_bits, 1))
            if order in self.settings.top:
                share = totals[order - 1] / max(1, self.totals[order - 1])
                found[order] = guess(kept.scores(1, totals).t, self.settings.top[order], share)
        return found

    def _best(self, thresholds: dict[int, int]) -> tuple[NGrams, dict[int, int]]:
        """The best n-grams under some thresholds, and those of the thresholds that must be lowered."""
        top = self.settings.top
        # Of order l and below, whatever may be part of a longer n-gram that counts.
        least = {order: min(t for other, t in thresholds.items() if other >= order) for order in range(1, max(top) + 1)}
        kept = Kept(frequent_first(self.engine.words(least[1])))
        best: list[Scores] = []
        lowered: dict[int, int] = {}
        for order in range(1, max(top) + 1):
            if order > 1:
                stage = kept.next_stage()
                kept.add(stage, self.engine.count(stage, least))
            if order not in top:
                continue
            scores = kept.scores(thresholds[order], self.totals)
            last = kth_largest(scores.t, top[order])
            # With too few of them nothing is proved, but that there are not enough that occur so often.
            needed = thresholds[order] // 4 if last is None else needed_count(last, int(self.totals[order - 1]))
            if max(1, needed) < thresholds[order]:
                lowered[order] = max(1, needed)
            elif not lowered:
                best.append(kept.best(scores, top[order], last))
        return NO_NGRAMS if lowered else kept.ngrams(best), lowered


def guess(scores: Float64s, k: int, share: float) -> int:
    """Half of the least count that the k-th best n-gram of the whole text may need (see counting.needed_count).

    Args:
        scores: float64, t of the n-grams of a sample; share: the sample's share of the text.

    t grows with the square root of the text. Where the sample is too small to tell, the squares are taken to follow
    a power law, as they nearly do.
    """
    ranked = np.sort(np.square(np.maximum(scores, 0)))[::-1]
    if np.isinf(ranked[:1]).any():
        return 1  # one l-gram is all there is
    if k <= len(ranked) and (share >= 1 or ranked[k - 1] >= SAMPLE_TRUSTED):
        return max(1, int(ranked[k - 1] / share / 2))
    many, few = (int((ranked >= square).sum()) for square in (SAMPLE_TRUSTED, 4 * SAMPLE_TRUSTED))
    if share >= 1 or not 0 < few < many:
        return 1
    exponent = math.log(many / few) / math.log(4)
    return max(1, int(SAMPLE_TRUSTED / share * (many / k) ** (1 / exponent) / 2))
