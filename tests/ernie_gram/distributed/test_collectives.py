"""The exchanges inside a program: what each bucket contains. The tests of the trainer run them in two processes."""

from __future__ import annotations

import numpy as np
import pytest

from ernie_gram.distributed.world import World  # import before Paddle: sets the number of threads

import paddle  # isort: skip

from tests.support.static_programs import fresh_scope

RANKS = 128
TENSORS = 40


@pytest.mark.parametrize("numbers_per_bucket", [1, 10, 1000])
def test_the_number_that_orders_the_exchanges_stays_0_over_many_buckets(
    monkeypatch: pytest.MonkeyPatch, numbers_per_bucket: int
) -> None:
    """All ranks are alike here, so that a sum over ranks is a multiplication. Some tensors contain NaN and inf."""
    from ernie_gram.distributed import collectives

    exchanged: list[paddle.Tensor] = []

    def all_reduce(tensor: paddle.Tensor) -> None:
        paddle.assign(tensor * RANKS, tensor)
        exchanged.append(tensor)

    monkeypatch.setattr(collectives.dist, "all_reduce", all_reduce)
    monkeypatch.setattr(collectives, "BUCKET_NUMBERS", numbers_per_bucket)
    values = [np.full((2, 3), i + 1, np.float32) for i in range(TENSORS)]
    values[0][-1, -1], values[7][:], values[-1][0, 0] = np.nan, np.inf, -np.inf
    with fresh_scope() as executor:
        program = paddle.static.Program()
        with paddle.static.program_guard(program, paddle.static.Program()), paddle.utils.unique_name.guard():
            inputs = [paddle.static.data(f"x{i}", [2, 3], "float32") for i in range(TENSORS)]
            sums = collectives.sum_over_ranks(inputs, World(0, RANKS, executor.place))
        feed = {f"x{i}": value for i, value in enumerate(values)}
        fetched = executor.run(program, feed=feed, fetch_list=[*sums, *exchanged])
    assert len(exchanged) == {1: TENSORS, 10: TENSORS // 2, 1000: 1}[numbers_per_bucket]
    for value, total in zip(values, fetched, strict=False):
        np.testing.assert_array_equal(total, value * RANKS)
    assert [joined[-1] for joined in fetched[TENSORS:]] == [0] * len(exchanged)
