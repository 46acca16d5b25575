"""N-gram counts and the t-test over them (paper, section 3.2 "N-gram extraction", Algorithm 1).

Pure functions on arrays; counting_job.py has them work through a text that does not fit into memory. An l-gram is
known by a key: the number of its first l - 1 words among the (l-1)-grams that were kept, and its last word.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from reader.tables.hashing import hash_to_slot

NO_WORD = -1

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
UInt64s = npt.NDArray[np.uint64]
Float64s = npt.NDArray[np.float64]


class Packing(NamedTuple):
    """How an l-gram and a count share 64 bits: key << count_bits | count, the key being head << word_bits | word."""

    word_bits: int
    count_bits: int


def packing(heads: int, words: int) -> Packing:
    """For keys of `heads` (l-1)-grams and `words` words; raises ValueError if no room is left for counts."""
    word_bits = max(1, words.bit_length())
    count_bits = 64 - word_bits - max(1, heads.bit_length())
    if count_bits < 1:
        raise ValueError(f"{heads:,} n-grams and {words:,} words are too many to be numbered in 64 bits")
    return Packing(word_bits, count_bits)


@numba.njit(cache=True, nogil=True)
def occurrences(stream: Int32s, orders: int) -> Int64s:
    """N_l for l = 1 to `orders`, int64 [orders]: how many l-grams there are, NO_WORD (any negative number) in none."""
    totals = np.zeros(orders, np.int64)
    run = 0
    for word in stream:
        run = run + 1 if word >= 0 else 0
        for order in range(min(run, orders)):
            totals[order] += 1
    return totals


@numba.njit(cache=True, nogil=True)
def renumbered(stream: Int32s, numbers: Int32s) -> Int32s:
    """numbers[word] for every word of a stream, NO_WORD for what is negative."""
    out = np.empty(len(stream), np.int32)
    for i in range(len(stream)):
        out[i] = numbers[stream[i]] if stream[i] >= 0 else NO_WORD
    return out


@numba.njit(cache=True, nogil=True)
def ngram_keys(heads: Int32s, words: Int32s, order: int, word_bits: int) -> UInt64s:
    """The key of every l-gram whose first and last l - 1 words are both known.

    Args:
        heads: int32, the number of the (l-1)-gram that starts at each place, negative where none does that counts.
        words: int32 [the same]; order: l.
    """
    places = len(words) - order + 1
    keys = np.empty(max(0, places), np.uint64)
    filled = 0
    for i in range(places):
        if heads[i] >= 0 and heads[i + 1] >= 0:
            keys[filled] = np.uint64(heads[i]) << np.uint64(word_bits) | np.uint64(words[i + order - 1])
            filled += 1
    return keys[:filled]


@numba.njit(cache=True, nogil=True)
def pack_sorted(keys: UInt64s, count_bits: int) -> UInt64s:
    """Sorted keys as packed (key, count) entries, sorted; a count too large for its bits takes several."""
    most = (np.int64(1) << count_bits) - 1
    shift = np.uint64(count_bits)
    entries = 0
    for i in range(len(keys)):
        entries += i == 0 or keys[i] != keys[i - 1]
    packed = np.empty(entries + len(keys) // most, np.uint64)
    filled = 0
    run = 0
    for i in range(len(keys)):
        run += 1
        if run == most or i + 1 == len(keys) or keys[i + 1] != keys[i]:
            packed[filled] = keys[i] << shift | np.uint64(run)
            filled += 1
            run = 0
    return packed[:filled]


@numba.njit(cache=True, nogil=True)
def sum_sorted(packed: UInt64s, count_bits: int, at_least: int) -> tuple[UInt64s, Int64s]:
    """Keys, ascending, and total counts of sorted packed entries, of those counted at least so often."""
    shift = np.uint64(count_bits)
    mask = (np.uint64(1) << shift) - np.uint64(1)
    kept = 0
    for only_counting in (True, False):
        if not only_counting:
            keys, counts = np.empty(kept, np.uint64), np.empty(kept, np.int64)
            kept = 0
        total = 0
        for i in range(len(packed)):
            total += np.int64(packed[i] & mask)
            if i + 1 == len(packed) or packed[i + 1] >> shift != packed[i] >> shift:
                if total >= at_least:
                    if not only_counting:
                        keys[kept], counts[kept] = packed[i] >> shift, total
                    kept += 1
                total = 0
    return keys, counts


@numba.njit(cache=True, nogil=True)
def dealt(packed: UInt64s, count_bits: int, shares: int) -> tuple[UInt64s, Int64s]:
    """Packed entries in shares by a hash of their keys, so that a key's are all in one; sorted ones remain so in each.

    Returns:
        The entries, share by share, and int64 [shares + 1], where each share begins.
    """
    share = np.empty(len(packed), np.int32)
    bounds = np.zeros(shares + 1, np.int64)
    for i in range(len(packed)):
        hashed = (packed[i] >> np.uint64(count_bits)) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(32)
        share[i] = np.int32(hashed * np.uint64(shares) >> np.uint64(32))
        bounds[share[i] + 1] += 1
    bounds = np.cumsum(bounds)
    at = bounds.copy()
    out = np.empty(len(packed), np.uint64)
    for i in range(len(packed)):
        out[at[share[i]]] = packed[i]
        at[share[i]] += 1
    return out, bounds


class KeyTable(NamedTuple):
    """Key -> its place among the keys it was built from: open addressing, at most half full.

    keys: uint64 [slots], key + 1, 0 where free; places: int32 [slots].
    """

    keys: UInt64s
    places: Int32s


@numba.njit(cache=True, nogil=True)
def key_table(keys: UInt64s) -> KeyTable:
    """The table of some keys, all different."""
    slots = 16
    while slots < 2 * len(keys):
        slots *= 2
    table, places = np.zeros(slots, np.uint64), np.zeros(slots, np.int32)
    for i in range(len(keys)):
        at = hash_to_slot(keys[i], slots)
        while table[at] != 0:
            at = (at + 1) & (slots - 1)
        table[at], places[at] = keys[i] + np.uint64(1), i
    return KeyTable(table, places)


@numba.njit(cache=True, nogil=True)
def longer_heads(heads: Int32s, words: Int32s, order: int, word_bits: int, table: KeyTable) -> Int32s:
    """The number in `table` of the l-gram that starts at each place, NO_WORD where none of them does.

    Args:
        heads, words, order (l), word_bits: as for `ngram_keys`.
    """
    known, places = table
    slots = len(known)
    out = np.full(len(heads), NO_WORD, np.int32)
    for i in range(len(heads) - order + 1):
        if heads[i] < 0 or heads[i + 1] < 0:
            continue
        key = (np.uint64(heads[i]) << np.uint64(word_bits) | np.uint64(words[i + order - 1])) + np.uint64(1)
        at = hash_to_slot(key - np.uint64(1), slots)
        while known[at] != key and known[at] != 0:
            at = (at + 1) & (slots - 1)
        if known[at] == key:
            out[i] = places[at]
    return out


def t_statistic(counts: Int64s, total: int, unigram_counts: Int64s, unigram_total: int) -> Float64s:
    """Student's t of each l-gram against independence of its words (Algorithm 1).

    p = count / N_l;  p' = product of the unigram probabilities;  sigma^2 = p (1 - p);
    t = (p - p') / sqrt(sigma^2 / N_l).

    Args:
        counts: int64 [n]; total: N_l.
        unigram_counts: int64 [n, l], count of each word; unigram_total: N_1.
    Returns:
        float64 [n]. Where one l-gram makes up the whole text (sigma = 0) it is infinite, or 0 if p' is 1 as well.
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
    """The k-th largest score, or None if there are fewer."""
    return float(np.partition(t, len(t) - k)[len(t) - k]) if k <= len(t) else None


def needed_count(score: float, total: int) -> int:
    """The least count an l-gram must have for its t to reach a score: t <= sqrt(c / (1 - c / N_l)).

    Solved for c, and rounded down generously: a count too low costs time, one too high an n-gram.
    """
    if score <= 0:
        return 1
    if math.isinf(score):
        return total
    squared = score * score
    return max(1, math.floor(squared * total / (total + squared) * (1 - 1e-9)))
