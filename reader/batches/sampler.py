"""The order of the sequences in training: a pure function of (seed, samples consumed, rank, world size)."""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

from reader.batches.random_keys import mix_bits

Int64s = npt.NDArray[np.int64]
ROUNDS = 4  # of the Feistel network


@numba.njit(cache=True, nogil=True)
def permute(position: int, size: int, seed: int, epoch: int) -> int:
    """Return the image of `position` under the epoch's pseudo-random permutation of 0..size-1.

    The permutation is a Feistel network over the next power of four, applied repeatedly until the result is below
    `size` (cycle walking). It needs no memory: any rank computes any position of any epoch directly, for a corpus of
    any size.
    """
    half = 1
    while 1 << (2 * half) < size:
        half += 1
    mask = np.uint64((1 << half) - 1)
    key = mix_bits(np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(epoch) + np.uint64(1))
    x = np.uint64(position)
    while True:
        left, right = x >> np.uint64(half), x & mask
        for i in range(ROUNDS):
            left, right = right, left ^ (mix_bits(key + np.uint64(i) * np.uint64(0xD1B54A32D192ED03) + right) & mask)
        x = left << np.uint64(half) | right
        if x < np.uint64(size):
            return np.int64(x)


@numba.njit(cache=True, nogil=True)
def sample_indices(first: int, last: int, size: int, seed: int) -> tuple[Int64s, Int64s]:
    """Return samples `first` to `last` (exclusive) of an endless stream of shuffled epochs.

    Args:
        size: number of sequences in an epoch.
    Returns:
        Sequence indices and epochs, int64 [last - first] each.
    """
    indices = np.empty(last - first, np.int64)
    epochs = np.empty(last - first, np.int64)
    for i in range(last - first):
        epochs[i] = (first + i) // size
        indices[i] = permute((first + i) % size, size, seed, epochs[i])
    return indices, epochs


def rank_share(batch_size: int, rank: int, world: int) -> tuple[int, int]:
    """Return the rows [first, last) of a global batch that belong to `rank`; sizes differ by at most one."""
    return batch_size * rank // world, batch_size * (rank + 1) // world
