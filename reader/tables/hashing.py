"""Where a 64-bit key's place in a table is: what the open-addressing tables of this package share.

Only the start; each loop that looks for a key has the probing in its own body, because a compiled call that takes an
array is many times dearer than the look-up.
"""

from __future__ import annotations

import numba
import numpy as np


@numba.njit(cache=True, nogil=True)
def first_slot(key: np.uint64, slots: int) -> int:
    """The slot, of a power of two, to begin at (Fibonacci hashing); then come the next ones (linear probing)."""
    hashed = key * np.uint64(0x9E3779B97F4A7C15)
    return np.int64((hashed ^ (hashed >> np.uint64(32))) & np.uint64(slots - 1))
