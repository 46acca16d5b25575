"""N-gram counts and the t-test over them (paper, section 3.2 "N-gram extraction", Algorithm 1).

Everything is exact. Words are numbers; NO_WORD stands wherever an n-gram may not continue: at the end of a
line and in place of a token that holds no letter, digit or Han character.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

NO_WORD = -1

Int64s = npt.NDArray[np.int64]
Float64s = npt.NDArray[np.float64]


class NGramCounts(NamedTuple):
    """The distinct n-grams of one order l.

    words: int64 [n, l], word ids; counts: int64 [n]; total: N_l, the occurrences of all l-grams.
    """

    words: Int64s
    counts: Int64s
    total: int


@dataclass(frozen=True)
class ScoredNGram:
    """An n-gram with its count and its t statistic."""

    words: tuple[str, ...]
    count: int
    t: float


def count_ngrams(stream: Int64s, vocabulary_size: int, max_order: int) -> Iterator[NGramCounts]:
    """Count the n-grams of orders 1 to `max_order` in a stream of word ids.

    Args:
        stream: int64 [words], each below `vocabulary_size`, or NO_WORD.
    Yields:
        One NGramCounts for each order, n-grams in ascending order of their word ids.
    """
    counts = np.bincount(stream[stream >= 0], minlength=vocabulary_size).astype(np.int64)
    seen = np.flatnonzero(counts)
    yield NGramCounts(seen[:, None], counts[seen], int(counts.sum()))
    # gram[i] numbers the distinct l-gram that starts at position i, NO_WORD where none does.
    gram = stream
    words = np.arange(vocabulary_size, dtype=np.int64)[:, None]
    for order in range(2, max_order + 1):
        last = stream[order - 1 :]
        head = gram[: len(last)]
        at = np.flatnonzero((head >= 0) & (last >= 0))
        # Two numbers below 2^31 packed into one key: sorting keys sorts n-grams.
        keys, inverse, counts = np.unique(
            head[at] * vocabulary_size + last[at], return_inverse=True, return_counts=True
        )
        words = np.column_stack([words[keys // vocabulary_size], keys % vocabulary_size])
        gram = np.full(len(stream), NO_WORD, np.int64)
        gram[at] = inverse
        yield NGramCounts(words, counts.astype(np.int64), len(at))


def t_statistic(counts: Int64s, total: int, unigram_counts: Int64s, unigram_total: int) -> Float64s:
    """Student's t of each l-gram against independence of its words (Algorithm 1).

    p = count / N_l;  p' = product of the unigram probabilities;  sigma^2 = p (1 - p);
    t = (p - p') / sqrt(sigma^2 / N_l).

    Args:
        counts: int64 [n]; total: N_l.
        unigram_counts: int64 [n, l], count of each word; unigram_total: N_1.
    Returns:
        float64 [n]. Infinite where one l-gram makes up the whole text (sigma = 0).
    """
    p = counts / total
    independent = np.ones(len(counts))
    for column in unigram_counts.T:
        independent = independent * (column / unigram_total)
    with np.errstate(divide="ignore"):
        return np.asarray((p - independent) / np.sqrt(p * (1.0 - p) / total), np.float64)


def best_ngrams(
    counted: NGramCounts, unigram_counts: Int64s, unigram_total: int, words: list[str], k: int
) -> list[ScoredNGram]:
    """The `k` n-grams with the largest t, best first; equal scores are ordered by their words."""
    t = t_statistic(counted.counts, counted.total, unigram_counts[counted.words], unigram_total)
    if k < len(t):
        bound = np.partition(t, len(t) - k)[len(t) - k]
        chosen = np.flatnonzero(t >= bound)
    else:
        chosen = np.arange(len(t))
    scored = [
        ScoredNGram(tuple(words[w] for w in ids), int(count), float(score))
        for ids, count, score in zip(counted.words[chosen], counted.counts[chosen], t[chosen], strict=True)
    ]
    scored.sort(key=lambda ngram: (-ngram.t, ngram.words))
    return scored[:k]


def build_ngrams(stream: Int64s, words: list[str], top: dict[int, int]) -> tuple[list[ScoredNGram], dict[int, int]]:
    """The best n-grams of each order, in the order of a lexicon: by order, then by t downwards.

    Args:
        stream: word ids as for `count_ngrams`; words: the word of each id.
        top: order l (2 or more) -> k_l, how many to keep.
    Returns:
        The n-grams, and N_l of every order counted.
    """
    best: list[ScoredNGram] = []
    totals: dict[int, int] = {}
    unigram_counts = np.zeros(len(words), np.int64)
    for order, counted in enumerate(count_ngrams(stream, len(words), max(top)), start=1):
        totals[order] = counted.total
        if order == 1:
            unigram_counts[counted.words[:, 0]] = counted.counts
        if order in top and counted.total:
            best += best_ngrams(counted, unigram_counts, totals[1], words, top[order])
    return best, totals
