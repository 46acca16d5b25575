"""Stateless randomness: the order of the sequences in training, and a key for each unit of a sequence.

Both are pure functions of the seed and of positions, such as the number of samples consumed.
"""

from __future__ import annotations

import numpy as np

from reader.system.arrays import Int64s, UInt64s
from reader.system.compiled import numba

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
ROUNDS = 4  # of the Feistel network


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
    key = mix_bits(np.uint64(seed) * GOLDEN + np.uint64(epoch) + np.uint64(1))
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


def accumulation_steps(batch_size: int, world: int, micro_batch: int | None) -> int:
    """Return the number of micro-batches of a step, the same on all ranks.

    It is the smallest number with which no rank holds more than `micro_batch` rows at a time; 1 without a limit.
    """
    return 1 if micro_batch is None else -(-largest_share(batch_size, world) // micro_batch)


def largest_micro_batch(batch_size: int, world: int, micro_batch: int | None) -> int:
    """Return the largest number of rows of a batch that a rank holds at a time; see `accumulation_steps`."""
    return largest_share(largest_share(batch_size, world), accumulation_steps(batch_size, world, micro_batch))


def largest_share(rows: int, parts: int) -> int:
    """Return the size of the largest part if `rows` rows are divided into `parts` parts as equally as possible."""
    return -(-rows // parts)


def micro_batch_rows(batch_size: int, rank: int, world: int, steps: int) -> list[tuple[int, int]]:
    """Return the rows [first, last) of a global batch in each of at most `steps` micro-batches of `rank`.

    Their sizes differ by at most one. None is empty, so a rank with fewer than `steps` rows has fewer micro-batches.
    """
    first, last = rank_share(batch_size, rank, world)
    parts = (rank_share(last - first, i, steps) for i in range(steps))
    return [(first + start, first + end) for start, end in parts if start < end]


def rank_share(batch_size: int, rank: int, world: int) -> tuple[int, int]:
    """Return the rows [first, last) of a global batch that belong to `rank`; sizes differ by at most one."""
    return batch_size * rank // world, batch_size * (rank + 1) // world
