"""Hash tables of 64-bit keys, with open addressing and linear probing."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from reader.system.arrays import Int32s, UInt64s
from reader.system.compiled import numba


@numba.njit(cache=True, nogil=True)
def hash_to_slot(key: np.uint64, num_slots: int) -> int:
    """Return the slot where the search for a key begins (Fibonacci hashing). The next slots follow (linear probing).

    `num_slots` must be a power of two.
    """
    hashed = key * np.uint64(0x9E3779B97F4A7C15)
    return np.int64((hashed ^ (hashed >> np.uint64(32))) & np.uint64(num_slots - 1))


@numba.njit(inline="always")
def find_slot(keys: UInt64s, key: np.uint64) -> int:
    """Return the slot of a key, which is not 0, or the free slot (keys[slot] is 0) where it would be inserted.

    Numba inlines this function. Otherwise it would update the reference count of `keys` around each call.
    """
    slot = hash_to_slot(key, len(keys))
    while keys[slot] != key and keys[slot] != 0:
        slot = (slot + 1) & (len(keys) - 1)
    return slot


class KeyTable(NamedTuple):
    """Hash table from keys to their indices in the array it was built from: open addressing, at most half full.

    keys: uint64 [slots], key + 1, or 0 in a free slot; indices: int32 [slots].
    """

    keys: UInt64s
    indices: Int32s


@numba.njit(cache=True, nogil=True)
def build_key_table(keys: UInt64s) -> KeyTable:
    """Build the table of distinct keys."""
    slots = 16
    while slots < 2 * len(keys):
        slots *= 2
    table, indices = np.zeros(slots, np.uint64), np.zeros(slots, np.int32)
    for i in range(len(keys)):
        key = keys[i] + np.uint64(1)
        slot = find_slot(table, key)
        table[slot], indices[slot] = key, i
    return KeyTable(table, indices)
