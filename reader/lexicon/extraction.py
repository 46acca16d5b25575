"""Exact extraction of the best n-grams from a text of any size (paper, section 3.5, Algorithm 1).

An engine splits the text into words, and then counts l-grams order by order: the local engine with processes on this
machine (local_engine.py), the Spark engine on a cluster (spark_engine.py).

Only l-grams that occur at least T_l times are kept. This pruning keeps every longer n-gram that reaches the threshold,
because none of its words and shorter n-grams is rarer than the n-gram itself. T_l is guessed, and verified after the
run: if an l-gram with a count below T_l could be among the best, T_l is lowered and the counting repeated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from reader.errors import InputError
from reader.lexicon.candidates import Candidates, Scores
from reader.lexicon.counting_stages import CountNgrams, NgramCounts, WordCounts, merge_words
from reader.lexicon.lexicon_file import NO_NGRAMS, Lexicon, LexiconInfo, NGrams, spell
from reader.lexicon.t_test import kth_largest, needed_count
from reader.system.arrays import Int64s
from reader.tokenization.vocabulary import PieceTable, Vocabulary

# The first T_l is N_l / (k_l + 1,000) / 40: about half of what the k-th best l-gram of English needs (`needed_count`).
# Of few l-grams it is less, because the counts of the most frequent ones differ from text to text.
FEW, MEAN_PER_THRESHOLD = 1000, 40


@dataclass(frozen=True)
class Settings:
    """What to count.

    Attributes:
        lowercase, segmenter: how text is split into words (see word_index.py and basic_tokenizer.py).
        top: order l -> k_l, the number of l-grams to keep; order 1 means words of several Han characters, by count.
        min_count: l-grams that occur less often are left out; the best k_l are chosen from all others.
    """

    lowercase: bool
    segmenter: str
    top: dict[int, int]
    min_count: int = 1


@dataclass(frozen=True)
class CountingResult:
    """What was counted.

    Attributes:
        best: the best l-grams of each order, in descending order of t.
        totals: order l -> N_l.
        text: the digest of the text.
    """

    best: NGrams
    totals: dict[int, int]
    text: str


class Engine(Protocol):
    """Applies the stages of counting_stages.py to all segments of one text."""

    def split(self, lowercase: bool, segmenter: str) -> tuple[Int64s, str]:
        """Split the text and store the result; return N_l, int64 [MAX_ORDER], and the digest of the text.

        The arguments are those of `split_segment`. Raises InputError for invalid text.
        """

    def words(self, min_count: int) -> list[WordCounts]:
        """Return the words that occur at least `min_count` times in the text, each in exactly one of the lists."""

    def count(self, stage: CountNgrams, thresholds: dict[int, int]) -> NgramCounts:
        """Return the l-grams that occur at least thresholds[l] times, where l is the order of the stage.

        `thresholds` also holds the thresholds of the shorter orders, by which `stage` was pruned.
        """


def count_best(engine: Engine, settings: Settings) -> CountingResult:
    """Count, lower thresholds and repeat until the result is proven.

    Raises InputError for invalid text, and if the disk or the system fails.
    """
    totals, digest = engine.split(settings.lowercase, settings.segmenter)
    if not totals[0]:
        raise InputError("--input: the text contains no words")
    thresholds = {order: max(settings.min_count, first_threshold(order, totals, settings)) for order in settings.top}
    best, lowered = _best(engine, settings, totals, thresholds)
    while lowered:
        thresholds |= lowered
        best, lowered = _best(engine, settings, totals, thresholds)
    return CountingResult(best, dict(enumerate(totals[: max(settings.top)].tolist(), start=1)), digest)


def first_threshold(order: int, totals: Int64s, settings: Settings) -> int:
    """Return a count that the best l-grams of an order probably reach."""
    return int(totals[order - 1]) // ((settings.top[order] + FEW) * MEAN_PER_THRESHOLD)


def _best(
    engine: Engine, settings: Settings, totals: Int64s, thresholds: dict[int, int]
) -> tuple[NGrams, dict[int, int]]:
    """Return the best n-grams under the given thresholds, and lower values for the thresholds that were too high.

    If a threshold was too high, the n-grams are NO_NGRAMS.
    """
    top, orders = settings.top, range(1, max(settings.top) + 1)
    # An l-gram must be kept if it may be part of a longer n-gram that reaches its own threshold.
    min_counts = {order: min(t for other, t in thresholds.items() if other >= order) for order in orders}
    candidates = Candidates(merge_words(engine.words(min_counts[1]), 1))
    best: list[Scores] = []
    lowered: dict[int, int] = {}
    for order in orders:
        if order > 1:
            stage = candidates.next_stage()
            candidates.add(stage, engine.count(stage, min_counts))
        if order not in top:
            continue
        scores = candidates.scores(thresholds[order], totals)
        kth_score = kth_largest(scores.t, top[order])
        # With fewer than k l-grams there is no k-th score, and so no bound: only a lower threshold can give more.
        needed = thresholds[order] // 4 if kth_score is None else needed_count(kth_score, int(totals[order - 1]))
        # N-grams that occur less than min_count times are left out in any case.
        needed = max(settings.min_count, needed)
        if needed < thresholds[order]:
            lowered[order] = needed
        elif not lowered:
            best.append(candidates.best(scores, top[order], kth_score))
    return NO_NGRAMS if lowered else candidates.to_ngrams(best), lowered


def make_lexicon(result: CountingResult, vocabulary: Vocabulary, settings: Settings, max_ngram_tokens: int) -> Lexicon:
    """Return the lexicon of the counted n-grams, without those of more than `max_ngram_tokens` sub-word tokens.

    N-grams of a single sub-word token are also left out: a word of Han characters may be a token of sentencepiece, and
    such a word needs no second identity. So are those with a word that the vocabulary cannot spell.
    """
    best = result.best
    _, offsets, is_unit = spell(best, PieceTable(vocabulary), vocabulary.unk)
    kept = best.select(is_unit & (np.diff(offsets) <= max_ngram_tokens))
    info = LexiconInfo(
        vocabulary=vocabulary.fingerprint,
        han=settings.segmenter,
        text=result.text,
        totals={str(order): total for order, total in result.totals.items()},
        top={str(order): k for order, k in settings.top.items()},
        max_ngram_tokens=max_ngram_tokens,
        min_count=settings.min_count,
        left_out=len(best.counts) - len(kept.counts),
    )
    return Lexicon(kept, info)
