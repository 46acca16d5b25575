"""Stateless randomness: the order of the sequences in training, a key for each unit, and the batches of a fine-tuning.

They are pure functions of the seed and of positions, such as the number of samples consumed. A rank reads its share of
each batch, so that a resumed run reads the same batches, on any number of processes.
"""

from __future__ import annotations

from collections.abc import Iterator

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


def epoch_steps(num_samples: int, batch_size: int) -> int:
    """Return the number of batches of an epoch."""
    return -(-num_samples // batch_size)


def epoch_batches(lengths: Int64s, batch_size: int, length_pool: int, seed: int, epoch: int) -> list[Int64s]:
    """Return the batches of an epoch, as indices of samples, int64 [at most batch_size]. Each sample is in one batch.

    Samples are drawn at random, and sorted by length within pools of `length_pool` batches. The sizes of the batches
    differ by at most one. Otherwise the last batch of an epoch might be a single sample, which would weigh as much as a
    full batch and leave nothing for some of the processes.
    """
    random = np.random.default_rng([seed, epoch])
    order = random.permutation(len(lengths))
    steps = epoch_steps(len(lengths), batch_size)
    bounds = np.arange(steps + 1) * len(lengths) // steps
    batches: list[Int64s] = []
    for first in range(0, steps, length_pool):
        pool_bounds = bounds[first : first + length_pool + 1]
        pool = order[pool_bounds[0] : pool_bounds[-1]]
        pool = pool[np.argsort(lengths[pool], kind="stable")]
        batches += np.split(pool, pool_bounds[1:-1] - pool_bounds[0])
    # Shuffle within batches too, so that the last rank does not always get the longest samples.
    return [random.permutation(batches[i]) for i in random.permutation(len(batches))]


def rank_batches(
    lengths: Int64s, batch_size: int, length_pool: int, seed: int, first_step: int, rank: int, world: int
) -> Iterator[Int64s]:
    """Yield one rank's share of the batches of all steps from `first_step`, without end."""
    steps = epoch_steps(len(lengths), batch_size)
    epoch, skipped = divmod(first_step, steps)
    while True:
        for batch in epoch_batches(lengths, batch_size, length_pool, seed, epoch)[skipped:]:
            first, last = rank_share(len(batch), rank, world)
            yield batch[first:last]
        epoch, skipped = epoch + 1, 0


def micro_batches(lengths: Int64s, samples: Int64s, steps: int) -> list[Int64s]:
    """Divide a rank's samples of a batch into at most `steps` micro-batches, whose sizes differ by at most one.

    Samples of similar length are put together. This only reduces padding: the gradients of all parts are added.
    """
    if steps == 1:
        return [samples]
    parts = np.array_split(samples[np.argsort(lengths[samples], kind="stable")], steps)
    return [part for part in parts if len(part)]


def evaluation_batches(lengths: Int64s, batch_size: int) -> list[Int64s]:
    """Return batches of all samples, the longest first, so that memory is allocated once; the last one may be smaller.

    They do not depend on the number of processes: whole batches are divided among ranks, so that every score is
    computed from the same numbers by the same program on any number of processes.
    """
    order = np.argsort(-lengths, kind="stable")
    return [order[first : first + batch_size] for first in range(0, len(order), batch_size)]
