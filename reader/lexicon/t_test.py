"""The t-test that scores n-grams (paper, section 3.5, Algorithm 1), and the counts that a score requires."""

from __future__ import annotations

import math

import numpy as np

from reader.system.arrays import Float64s, Int64s


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


def kth_largest(t: Float64s, k: int) -> float | None:
    """Return the k-th largest score, or None if there are fewer than k."""
    return float(np.partition(t, len(t) - k)[len(t) - k]) if k <= len(t) else None


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
