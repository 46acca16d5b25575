"""The exchanges inside a program: what each bucket contains, and the agreement to end after the same step.

The tests of the trainer run them in two processes.
"""

from __future__ import annotations

import signal
from types import SimpleNamespace
from typing import Any

import numpy as np
import paddle
import pytest

from ernie_gram.distributed import collectives
from ernie_gram.distributed.world import World
from ernie_gram.run import termination
from reader.errors import InputError
from tests.support.static_programs import fresh_program, fresh_scope

RANKS = 128
TENSORS = 40


@pytest.mark.parametrize("numbers_per_bucket", [1, 10, 1000])
def test_the_number_that_orders_the_exchanges_stays_0_over_many_buckets(
    monkeypatch: pytest.MonkeyPatch, numbers_per_bucket: int
) -> None:
    """All ranks are alike here, so that a sum over ranks is a multiplication. Some tensors contain NaN and inf."""
    exchanged: list[paddle.Tensor] = []

    def all_reduce(tensor: paddle.Tensor) -> None:
        paddle.assign(tensor * RANKS, tensor)
        exchanged.append(tensor)

    monkeypatch.setattr(collectives.dist, "all_reduce", all_reduce)
    monkeypatch.setattr(collectives, "BUCKET_NUMBERS", numbers_per_bucket)
    values = [np.full((2, 3), i + 1, np.float32) for i in range(TENSORS)]
    values[0][-1, -1], values[7][:], values[-1][0, 0] = np.nan, np.inf, -np.inf
    with fresh_program() as (executor, program, _):
        inputs = [paddle.static.data(f"x{i}", [2, 3], "float32") for i in range(TENSORS)]
        sums = collectives.sum_over_ranks(inputs, World(0, RANKS, executor.place))
        feed = {f"x{i}": value for i, value in enumerate(values)}
        fetched = executor.run(program, feed=feed, fetch_list=[*sums, *exchanged])
    assert len(exchanged) == {1: TENSORS, 10: TENSORS // 2, 1000: 1}[numbers_per_bucket]
    for value, total in zip(values, fetched, strict=False):
        np.testing.assert_array_equal(total, value * RANKS)
    assert [joined[-1] for joined in fetched[TENSORS:]] == [0] * len(exchanged)


@pytest.mark.parametrize("rows", [0, 1, 7, 100])
def test_large_arrays_are_summed_in_parts(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    sizes: list[int] = []

    def add_up(_: object, array: np.ndarray) -> np.ndarray:
        sizes.append(array.size)
        return array * RANKS

    monkeypatch.setattr(collectives, "BUCKET_NUMBERS", 10)
    monkeypatch.setattr(collectives, "_sum_on_host", add_up)
    scores = np.random.default_rng(0).standard_normal((rows, 3)).astype(np.float32)
    summed = collectives.sum_array(None, scores, World(0, RANKS, paddle.CPUPlace()))
    np.testing.assert_array_equal(summed, scores * RANKS)
    assert max(sizes, default=0) <= 10
    assert sum(sizes) == scores.size


def test_arrays_of_many_sizes_need_few_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """An executor keeps each program that it has run, with its last feed and fetch."""

    monkeypatch.setattr(collectives.dist, "all_reduce", lambda tensor: paddle.assign(tensor * RANKS, tensor))
    collectives._sum_program.cache_clear()
    with fresh_scope() as executor:
        for size in range(1, 65):
            array = np.arange(size, dtype=np.float32)
            summed = collectives.sum_array(executor, array, World(0, RANKS, executor.place))
            np.testing.assert_array_equal(summed, array * RANKS)
    assert collectives._sum_program.cache_info().currsize == 7  # 1, 2, 4 ... 64
    collectives._sum_program.cache_clear()


def test_512_ranks_disagree_as_soon_as_one_has_another_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """The numbers are digests of 32 bits. float32 would not hold their sum."""
    digest = 2**32 - 2

    def check(last: int) -> None:
        def add_up(_: object, vector: np.ndarray, world: World) -> np.ndarray:
            others = [np.full_like(vector, digest)] * (world.size - 2)
            return np.sum([vector, *others, np.full_like(vector, last)], axis=0)

        monkeypatch.setattr(collectives, "sum_array", add_up)
        collectives.check_agreement(None, digest, "the corpora", World(0, 512, paddle.CPUPlace()))

    check(digest)
    for other in (digest - 1, digest + 1):
        with pytest.raises(InputError, match="rank 0 disagrees with the others about the corpora"):
            check(other)


@pytest.mark.parametrize("number", [None, *termination.SIGNALS], ids=str)
def test_each_signal_of_one_rank_ends_all(number: signal.Signals | None, monkeypatch: pytest.MonkeyPatch) -> None:
    world: Any = SimpleNamespace(size=2)
    executor: Any = None
    for own, other in ((number, None), (None, number)):
        others = np.array([*(other == each for each in termination.SIGNALS), 0.5])
        monkeypatch.setattr(termination, "requested", lambda own=own: own)
        monkeypatch.setattr(collectives, "sum_array", lambda _, array, __, others=others: array + others)
        assert collectives.StopAgreement(executor, world, 0).signal_now(3) == number
