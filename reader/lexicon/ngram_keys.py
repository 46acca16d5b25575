"""Integer keys of l-grams, and their counts as sorted 64-bit entries.

The functions are pure and work on arrays; counting.py applies them to a text that does not fit into memory.
The prefix of an l-gram is its first l - 1 words; a prefix ID is the index of this (l-1)-gram among the kept ones (for
l = 2: the word ID). The key of an l-gram combines its prefix ID with the ID of its last word. An entry combines a key
with a count.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from reader.errors import InputError
from reader.system.arrays import Int32s, Int64s, UInt64s
from reader.system.compiled import numba
from reader.system.hash_tables import KeyTable, find_slot

NO_WORD = -1


class KeyLayout(NamedTuple):
    """How a key and a count share 64 bits.

    key = prefix ID << word_bits | word ID;  entry = key << count_bits | count.
    """

    word_bits: int
    count_bits: int


def key_layout(num_prefixes: int, num_words: int) -> KeyLayout:
    """Return the layout for keys of `num_prefixes` (l-1)-grams and `num_words` words.

    Raises InputError if no bits are left for counts.
    """
    word_bits = max(1, num_words.bit_length())
    count_bits = 64 - word_bits - max(1, num_prefixes.bit_length())
    if count_bits < 1:
        too_many = f"{num_prefixes:,} n-grams and {num_words:,} words are too many for 64-bit keys"
        raise InputError(f"--top: {too_many}; ask for fewer n-grams")
    return KeyLayout(word_bits, count_bits)


def ngram_totals(stream: Int32s, max_order: int) -> Int64s:
    """Return N_l, the number of l-grams, for l = 1 to `max_order`; int64 [max_order].

    No l-gram contains NO_WORD (or any other negative number).
    """
    runs = np.diff(np.flatnonzero(stream < 0), prepend=-1, append=len(stream)) - 1
    return np.array([np.maximum(runs - order, 0).sum() for order in range(max_order)], np.int64)


@numba.njit(cache=True, nogil=True)
def renumber(stream: Int32s, new_ids: Int32s) -> Int32s:
    """Return new_ids[word] for every word of a stream, and NO_WORD for negative numbers; int32 [len(stream)]."""
    out = np.empty(len(stream), np.int32)
    for i in range(len(stream)):
        out[i] = new_ids[stream[i]] if stream[i] >= 0 else NO_WORD
    return out


@numba.njit(cache=True, nogil=True)
def ngram_keys(prefixes: Int32s, words: Int32s, order: int, word_bits: int) -> UInt64s:
    """Return the key of every l-gram whose first l - 1 words and last l - 1 words are both kept (l-1)-grams.

    Args:
        prefixes: int32 [n], ID of the (l-1)-gram that starts at each position; negative where it is not kept.
        words: int32 [n], word IDs; order: l.
    """
    positions = len(words) - order + 1
    keys = np.empty(max(0, positions), np.uint64)
    filled = 0
    for i in range(positions):
        if prefixes[i] >= 0 and prefixes[i + 1] >= 0:
            keys[filled] = np.uint64(prefixes[i]) << np.uint64(word_bits) | np.uint64(words[i + order - 1])
            filled += 1
    return keys[:filled]


@numba.njit(cache=True, nogil=True)
def count_runs(keys: UInt64s, count_bits: int) -> UInt64s:
    """Count equal keys in sorted `keys`; return sorted entries, uint64.

    A count that does not fit into `count_bits` is split over several entries of the same key.
    """
    max_count = (np.int64(1) << count_bits) - 1
    shift = np.uint64(count_bits)
    distinct = 0
    for i in range(len(keys)):
        distinct += i == 0 or keys[i] != keys[i - 1]
    entries = np.empty(distinct + len(keys) // max_count, np.uint64)
    filled = 0
    run = 0
    for i in range(len(keys)):
        run += 1
        if run == max_count or i + 1 == len(keys) or keys[i + 1] != keys[i]:
            entries[filled] = keys[i] << shift | np.uint64(run)
            filled += 1
            run = 0
    return entries[:filled]


@numba.njit(cache=True, nogil=True)
def merge_entries(entries: UInt64s, count_bits: int, min_count: int) -> tuple[UInt64s, Int64s]:
    """Sum the counts of equal keys in sorted entries.

    Returns:
        The keys whose total count is at least `min_count`, in ascending order, and these counts.
    """
    shift = np.uint64(count_bits)
    mask = (np.uint64(1) << shift) - np.uint64(1)
    keys, counts = np.empty(len(entries), np.uint64), np.empty(len(entries), np.int64)
    kept = total = 0
    for i in range(len(entries)):
        total += np.int64(entries[i] & mask)
        if i + 1 == len(entries) or entries[i + 1] >> shift != entries[i] >> shift:
            if total >= min_count:
                keys[kept], counts[kept] = entries[i] >> shift, total
                kept += 1
            total = 0
    return keys[:kept].copy(), counts[:kept].copy()


@numba.njit(cache=True, nogil=True)
def extend_prefixes(prefixes: Int32s, words: Int32s, order: int, word_bits: int, table: KeyTable) -> Int32s:
    """Return, for each position, the index in `table` of the l-gram that starts there, or NO_WORD if it is not kept.

    The result serves as `prefixes` for order l + 1.

    Args:
        prefixes, words, order (l), word_bits: as for `ngram_keys`.
    """
    known, indices = table
    out = np.full(len(prefixes), NO_WORD, np.int32)
    for i in range(len(prefixes) - order + 1):
        if prefixes[i] < 0 or prefixes[i + 1] < 0:
            continue
        key = (np.uint64(prefixes[i]) << np.uint64(word_bits) | np.uint64(words[i + order - 1])) + np.uint64(1)
        slot = find_slot(known, key)
        if known[slot] == key:
            out[i] = indices[slot]
    return out
