"""The hash function of the hash tables with open addressing in this package.

Only the choice of the first slot is shared. Each loop that searches for a key contains its own probing code, because a
compiled call that takes an array costs many times as much as the lookup itself.
"""

from __future__ import annotations

import numpy as np

from reader.system.compiled import numba


@numba.njit(cache=True, nogil=True)
def hash_to_slot(key: np.uint64, num_slots: int) -> int:
    """Return the slot where the search for a key begins (Fibonacci hashing). The next slots follow (linear probing).

    `num_slots` must be a power of two.
    """
    hashed = key * np.uint64(0x9E3779B97F4A7C15)
    return np.int64((hashed ^ (hashed >> np.uint64(32))) & np.uint64(num_slots - 1))
