"""Pseudo-random numbers that depend only on (seed, epoch, sequence index), so that no state has to be stored."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from reader.system.compiled import numba

UInt64s = npt.NDArray[np.uint64]
GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@numba.njit(cache=True, nogil=True)
def mix_bits(x: np.uint64) -> np.uint64:
    """Return the SplitMix64 finalizer of `x`: pseudo-random bits that pass statistical tests (Steele et al. 2014)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@numba.njit(cache=True, nogil=True)
def unit_keys(count: int, seed: int, epoch: int, index: int) -> UInt64s:
    """Return one pseudo-random key for each of the first `count` units of a sequence, uint64 [count].

    The keys of a sequence are distinct, because `mix_bits` is a bijection and is applied to distinct numbers. A longer
    sequence has the same first keys.

    Args:
        seed, epoch, index (of the sequence): determine the keys.
    """
    state = mix_bits(np.uint64(seed) + GOLDEN)
    state = mix_bits((state ^ np.uint64(epoch)) + GOLDEN)
    state = mix_bits((state ^ np.uint64(index)) + GOLDEN)
    keys = np.empty(count, np.uint64)
    for i in range(count):
        state += GOLDEN
        keys[i] = mix_bits(state)
    return keys
