"""Hash tables with open addressing and linear probing: where a key is."""

from __future__ import annotations

import numpy as np

from reader.system.arrays import UInt64s
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
