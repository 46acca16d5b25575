"""Which samples make a batch, in training and in evaluation.

The batches of training are a pure function of (seed, step), and a rank reads its share of each, so that a resumed run
reads the same batches, on any number of processes.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from reader.batches.sampler import rank_share
from reader.system.arrays import Int64s


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
