"""Exact extraction of the best n-grams from a text of any size (paper, section 3.5, Algorithm 1).

An engine splits the text into words, and then counts l-grams order by order: the local engine with processes on this
machine (counting.py), the Spark engine on a cluster (spark_engine.py).

Only l-grams that occur at least T_l times are kept. This pruning keeps every longer n-gram that reaches the threshold,
because none of its words and shorter n-grams is rarer than the n-gram itself. T_l is guessed, and verified after the
run: if an l-gram with a count below T_l could be among the best, T_l is lowered and the counting repeated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np

from reader.errors import InputError
from reader.lexicon.counting import CountNgrams, LocalEngine, NgramCounts, WordCounts, merge_words
from reader.lexicon.lexicon_file import NO_NGRAMS, Lexicon, LexiconInfo, NGrams, index_words, spell
from reader.lexicon.ngram_keys import KeyLayout, key_layout
from reader.system.arrays import Float64s, Int64s
from reader.system.hash_tables import (
    KeyTable,
    build_key_table,
    empty_table,
    find_or_add_strings,
    take_strings,
    unpack_strings,
)
from reader.tokenization.basic_tokenizer import is_han
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


def t_statistic(counts: Int64s, total: int, unigram_counts: Int64s, unigram_total: int) -> Float64s:
    """Return Student's t of each l-gram, tested against independence of its words (Algorithm 1).

    p = count / N_l;  p' = product of the unigram probabilities;  sigma^2 = p (1 - p);
    t = (p - p') / sqrt(sigma^2 / N_l).

    Args:
        counts: int64 [n]; total: N_l.
        unigram_counts: int64 [n, l], count of each word; unigram_total: N_1.
    Returns:
        float64 [n]. If all l-grams of the text are the same one, sigma is 0: t is then infinite, or 0 if p' is also 1.
    """
    p = counts / total
    independent = np.ones(len(counts))
    for column in unigram_counts.T:
        independent = independent * (column / unigram_total)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.asarray((p - independent) / np.sqrt(p * (1.0 - p) / total), np.float64)
    t[np.isnan(t)] = 0.0
    return t


def kth_largest(t: Float64s, k: int) -> float:
    """Return the k-th largest score, or minus infinity if there are fewer than k."""
    return float(np.partition(t, len(t) - k)[len(t) - k]) if k <= len(t) else -math.inf


def needed_count(score: float, total: int) -> int:
    """Return a lower bound on the count of an l-gram whose t reaches `score`; `total` is N_l.

    The bound follows from t <= sqrt(c / (1 - c / N_l)), solved for the count c. It is rounded down with a margin:
    a bound that is too low only costs time, but a bound that is too high would lose an n-gram.
    """
    if score <= 0:
        return 1
    if math.isinf(score):
        return total
    squared = score * score
    return max(1, math.floor(squared * total / (total + squared) * (1 - 1e-9)))


class Scores(NamedTuple):
    """L-grams with their scores: words, word IDs, int64 [n, l]; counts, int64 [n]; t, float64 [n]."""

    words: Int64s
    counts: Int64s
    t: Float64s


class Candidates:
    """The words and l-grams kept so far: of orders 2 to the newest order; initially only words (order 1).

    Attributes:
        vocabulary: the words; a word ID is an index into it.
    """

    def __init__(self, vocabulary: WordCounts) -> None:
        self.vocabulary = vocabulary
        self._word_table = find_or_add_strings(empty_table(), vocabulary.strings)[0]
        self._ngrams: list[NgramCounts] = []
        self._layouts: list[KeyLayout] = []
        self._tables: list[KeyTable] = []

    def count_next(self, engine: LocalEngine, thresholds: dict[int, int]) -> None:
        """Count the l-grams of the next order, which becomes the newest; see LocalEngine.count.

        Raises InputError if there are too many words and l-grams for 64-bit keys.
        """
        num_words = len(self.vocabulary.counts)
        if self._ngrams:
            self._tables.append(build_key_table(self._ngrams[-1].keys))
        self._layouts.append(key_layout(len(self._ngrams[-1].keys) if self._ngrams else num_words, num_words))
        stage = CountNgrams(len(self._layouts) + 1, self._word_table, self._tables, self._layouts)
        self._ngrams.append(engine.count(stage, thresholds))

    def scores(self, min_count: int, totals: Int64s) -> Scores:
        """Score the l-grams of the newest order that occur at least `min_count` times.

        For order 1, these are the words of several Han characters; with p' = 0, ranking by t is ranking by count.

        Args:
            totals: int64 [MAX_ORDER], N_l.
        """
        total, unigram_total = int(totals[len(self._ngrams)]), int(totals[0])
        unigrams = self.vocabulary.counts
        if not self._ngrams:
            are_han = [len(word) > 1 and is_han(word[0]) for word in unpack_strings(self.vocabulary.strings)]
            rows = np.flatnonzero(np.array(are_han, bool) & (unigrams >= min_count))
            zeros = np.zeros((len(rows), 1), np.int64)
            return Scores(rows[:, None], unigrams[rows], t_statistic(unigrams[rows], total, zeros, 1))
        rows = np.flatnonzero(self._ngrams[-1].counts >= min_count)
        words, counts = self._word_ids(rows), self._ngrams[-1].counts[rows]
        return Scores(words, counts, t_statistic(counts, total, unigrams[words], unigram_total))

    def best(self, scores: Scores, k: int) -> NGrams:
        """Return the k l-grams with the largest t, in descending order of t; ties are ordered by the words."""
        indices = np.flatnonzero(scores.t >= kth_largest(scores.t, k))
        words, counts, t = scores.words[indices], scores.counts[indices], scores.t[indices]
        distinct, inverse = np.unique(words, return_inverse=True)
        inverse = np.reshape(inverse, words.shape)
        texts = np.array(unpack_strings(take_strings(self.vocabulary.strings, distinct)), np.object_)
        ranks = np.argsort(np.argsort(texts))[inverse]
        order = np.lexsort((*ranks.T[::-1], -t))[:k]
        return NGrams([*map(" ".join, texts[inverse[order]].tolist())], counts[order], t[order])

    def _word_ids(self, rows: Int64s) -> Int64s:
        """Return the word IDs of some l-grams of the newest order, int64 [rows, l]."""
        columns: list[Int64s] = []
        prefixes = rows
        for ngrams, layout in zip(reversed(self._ngrams), reversed(self._layouts), strict=True):
            keys = ngrams.keys[prefixes]
            columns.append((keys & np.uint64((1 << layout.word_bits) - 1)).astype(np.int64))
            prefixes = (keys >> np.uint64(layout.word_bits)).astype(np.int64)
        return np.column_stack([prefixes, *reversed(columns)])


def count_best(engine: LocalEngine, settings: Settings) -> NGrams:
    """Return the best l-grams of each order, in descending order of t: count, lower thresholds, repeat until proven.

    Raises InputError for invalid text, and if the disk or the system fails.
    """
    engine.split(settings.lowercase, settings.segmenter)
    if not engine.totals[0]:
        raise InputError("--input: the text contains no words")
    first = {order: first_threshold(order, engine.totals, settings) for order in settings.top}
    thresholds = {order: max(settings.min_count, threshold) for order, threshold in first.items()}
    best, lowered = _best(engine, settings, thresholds)
    while lowered:
        thresholds |= lowered
        best, lowered = _best(engine, settings, thresholds)
    return best


def first_threshold(order: int, totals: Int64s, settings: Settings) -> int:
    """Return a count that the best l-grams of an order probably reach."""
    return int(totals[order - 1]) // ((settings.top[order] + FEW) * MEAN_PER_THRESHOLD)


def _best(engine: LocalEngine, settings: Settings, thresholds: dict[int, int]) -> tuple[NGrams, dict[int, int]]:
    """Return the best n-grams under the given thresholds, and lower values for the thresholds that were too high.

    If a threshold was too high, the n-grams are NO_NGRAMS.
    """
    top, orders = settings.top, range(1, max(settings.top) + 1)
    # An l-gram must be kept if it may be part of a longer n-gram that reaches its own threshold.
    min_counts = {order: min(t for other, t in thresholds.items() if other >= order) for order in orders}
    candidates = Candidates(merge_words(engine.words(min_counts[1]), 1))
    best: list[NGrams] = []
    lowered: dict[int, int] = {}
    for order in orders:
        if order > 1:
            candidates.count_next(engine, min_counts)
        if order not in top:
            continue
        scores = candidates.scores(thresholds[order], engine.totals)
        total, kth_score = int(engine.totals[order - 1]), kth_largest(scores.t, top[order])
        # With fewer than k l-grams there is no k-th score, and so no bound: only a lower threshold can give more.
        needed = needed_count(kth_score, total) if kth_score > -math.inf else thresholds[order] // 4
        # N-grams that occur less than min_count times are left out in any case.
        needed = max(settings.min_count, needed)
        if needed < thresholds[order]:
            lowered[order] = needed
        elif not lowered:
            best.append(candidates.best(scores, top[order]))
    if lowered:
        return NO_NGRAMS, lowered
    texts, counts, t = zip(*best, strict=True)
    return NGrams([*chain.from_iterable(texts)], np.concatenate(counts), np.concatenate(t)), {}


def make_lexicon(
    best: NGrams, engine: LocalEngine, vocabulary: Vocabulary, settings: Settings, max_ngram_tokens: int
) -> Lexicon:
    """Return the lexicon of the n-grams that an engine counted, without those of more than `max_ngram_tokens` tokens.

    N-grams of a single sub-word token are also left out: a word of Han characters may be a token of sentencepiece, and
    such a word needs no second identity. So are those with a word that the vocabulary cannot spell.
    """
    _, offsets, is_unit = spell(*index_words(best.texts), PieceTable(vocabulary), vocabulary.unk)
    kept = best.select(is_unit & (np.diff(offsets) <= max_ngram_tokens))
    info = LexiconInfo(
        vocabulary=vocabulary.fingerprint,
        han=settings.segmenter,
        text=engine.digest,
        totals={str(order): int(engine.totals[order - 1]) for order in range(1, max(settings.top) + 1)},
        top={str(order): k for order, k in settings.top.items()},
        max_ngram_tokens=max_ngram_tokens,
        min_count=settings.min_count,
        left_out=len(best.counts) - len(kept.counts),
    )
    return Lexicon(kept, info)
