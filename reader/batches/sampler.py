"""Which sequences make up a batch: a pure function of (seed, consumed, rank, world)."""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

from reader.batches.masking import mix

Int64s = npt.NDArray[np.int64]
ROUNDS = 4


@numba.njit(cache=True, nogil=True)
def shuffled(position: int, size: int, seed: int, epoch: int) -> int:
    """Where `position` of 0..size-1 goes in the shuffle of an epoch.

    A Feistel network over the next power of four, walked until it lands below `size`, is a permutation that
    needs no memory: any rank finds any place of any epoch at once, in a corpus of any size.
    """
    half = 1
    while 1 << (2 * half) < size:
        half += 1
    mask = np.uint64((1 << half) - 1)
    key = mix(np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(epoch) + np.uint64(1))
    x = np.uint64(position)
    while True:
        left, right = x >> np.uint64(half), x & mask
        for i in range(ROUNDS):
            left, right = right, left ^ (mix(key + np.uint64(i) * np.uint64(0xD1B54A32D192ED03) + right) & mask)
        x = left << np.uint64(half) | right
        if x < np.uint64(size):
            return np.int64(x)


@numba.njit(cache=True, nogil=True)
def draw(first: int, last: int, size: int, seed: int) -> tuple[Int64s, Int64s]:
    """Samples `first` to `last` (exclusive) of an endless run of shuffled epochs.

    Returns sequence indices and their epochs, int64 [last - first] each.
    """
    indices = np.empty(last - first, np.int64)
    epochs = np.empty(last - first, np.int64)
    for i in range(last - first):
        epochs[i] = (first + i) // size
        indices[i] = shuffled((first + i) % size, size, seed, epochs[i])
    return indices, epochs


def rank_share(batch_size: int, rank: int, world: int) -> tuple[int, int]:
    """The rows of a global batch that belong to a rank, as [first, last): as even as can be."""
    return batch_size * rank // world, batch_size * (rank + 1) // world
