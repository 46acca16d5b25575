"""Which samples make a batch: each sample once per epoch, the same on any number of processes and after any resume."""

from __future__ import annotations

from collections import Counter
from itertools import islice, pairwise

import numpy as np
import pytest

from tasks.training.data import epoch_batches, epoch_steps, evaluation_batches, micro_batches, rank_batches

SEED = 5


def lengths_of(count: int) -> np.ndarray:
    return np.random.default_rng(0).integers(3, 200, count)


@pytest.mark.parametrize("pool", [1, 3, 50])
@pytest.mark.parametrize(("count", "batch_size"), [(1, 8), (8, 8), (9, 8), (1001, 8), (700, 7), (30, 100)])
def test_an_epoch_has_each_sample_once_in_batches_of_almost_equal_size(count: int, batch_size: int, pool: int) -> None:
    batches = epoch_batches(lengths_of(count), batch_size, pool, SEED, epoch=3)
    assert sorted(np.concatenate(batches)) == list(range(count))
    sizes = {len(batch) for batch in batches}
    assert max(sizes) <= batch_size
    assert max(sizes) - min(sizes) <= 1
    assert len(batches) == epoch_steps(count, batch_size) == int(np.ceil(count / batch_size))


def test_a_large_pool_has_batches_of_similar_length_in_random_order_and_one_batch_any_length() -> None:
    lengths = lengths_of(100)
    drawn, of_other_lengths = (epoch_batches(given, 8, 1, SEED, 0) for given in (lengths, -lengths))
    assert [sorted(batch) for batch in drawn] == [sorted(batch) for batch in of_other_lengths]
    # A naive loop over shuffled samples has much more padding; a sorted epoch would have increasing lengths.
    lengths, size = lengths_of(4 * 50 * 8), 8

    def padding(batches: list[np.ndarray]) -> float:
        return 1 - sum(lengths[batch].sum() for batch in batches) / sum(
            lengths[batch].max() * len(batch) for batch in batches
        )

    shuffled = np.random.default_rng(1).permutation(len(lengths)).reshape(-1, size)
    grouped = epoch_batches(lengths, size, 50, SEED, 0)
    assert padding(grouped) < 0.05 < 0.3 < padding(list(shuffled))
    means = np.array([lengths[batch].mean() for batch in grouped])
    assert abs(np.corrcoef(means, np.arange(len(means)))[0, 1]) < 0.2
    # Ranks take consecutive parts of a batch, so its rows must not be sorted.
    halves = np.array([lengths[batch[: size // 2]].mean() - lengths[batch[size // 2 :]].mean() for batch in grouped])
    assert abs(halves.mean()) < halves.std() / 5
    lengths = lengths_of(300)

    def joined(seed: int, epoch: int) -> tuple[int, ...]:
        return tuple(np.concatenate(epoch_batches(lengths, 8, 2, seed, epoch)))

    assert joined(1, 0) == joined(1, 0)
    assert len({joined(1, 0), joined(1, 1), joined(2, 0)}) == 3


@pytest.mark.parametrize(("count", "steps"), [(16, 1), (16, 4), (15, 4), (3, 4)])
def test_micro_batches_divide_a_share_by_length(count: int, steps: int) -> None:
    lengths = lengths_of(100)
    samples = np.random.default_rng(0).permutation(100)[:count]
    parts = micro_batches(lengths, samples, steps)
    assert sorted(np.concatenate(parts)) == sorted(samples)
    sizes = [len(part) for part in parts]
    assert len(parts) == min(steps, count)
    assert max(sizes) - min(sizes) <= 1
    for shorter, longer in pairwise(parts):
        assert lengths[shorter].max() <= lengths[longer].min()


@pytest.mark.parametrize("world", [1, 2, 3])
@pytest.mark.parametrize("first_step", [0, 1, 6, 7, 20])
def test_ranks_share_the_batches_that_an_uninterrupted_process_reads(world: int, first_step: int) -> None:
    lengths = lengths_of(50)
    whole = list(islice(rank_batches(lengths, 8, 2, SEED, 0, 0, 1), 25))
    shares = [list(islice(rank_batches(lengths, 8, 2, SEED, first_step, rank, world), 5)) for rank in range(world)]
    for step in range(5):
        joined = np.concatenate([share[step] for share in shares])
        assert joined.tolist() == whole[first_step + step].tolist()


@pytest.mark.parametrize(("count", "size"), [(1, 4), (23, 4), (24, 4), (3, 8)])
def test_evaluation_reads_each_sample_once(count: int, size: int) -> None:
    lengths = lengths_of(count)
    batches = evaluation_batches(lengths, size)
    assert Counter(np.concatenate(batches).tolist()) == Counter(range(count))
    assert [len(batch) for batch in batches[:-1]] == [size] * (len(batches) - 1)
    assert np.all(np.diff(lengths[np.concatenate(batches)]) <= 0)
