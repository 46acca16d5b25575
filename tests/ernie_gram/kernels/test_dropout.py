"""Masks of dropout on a CPU: their rate, that forward and backward pass share them, and that they are independent."""

from __future__ import annotations

import numpy as np
import paddle
import pytest
from ernie_gram.kernels.rewriting import use_compiled
from paddle.nn import functional as F

from tests.support.static_programs import fresh_program


def drawn(rate: float, shape: tuple[int, ...], seed: int = 1) -> list[np.ndarray]:
    """Return what a program gives for x of ones: two dropouts of x, and the gradient of the sum of the first."""
    with fresh_program() as (executor, main, _):
        given = paddle.static.data("x", [-1] * len(shape))
        given.stop_gradient = False
        x = given * 1.0
        first, second = (F.dropout(x, rate) for _ in range(2))
        fetches = [each * 1.0 for each in (first, second)]
        (gradient,) = paddle.static.gradients([first.sum()], [given])
        use_compiled(main, {gradient.id})
        assert "pd_op.dropout" not in {operation.name() for operation in main.global_block().ops}
        paddle.seed(seed)
        return executor.run(main, feed={"x": np.ones(shape, np.float32)}, fetch_list=[*fetches, gradient])


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.015])
def test_numbers_are_dropped_at_the_rate_and_the_others_are_scaled_up(rate: float) -> None:
    shape = (3, 7, 100, 501)  # the last part is not whole
    first, _, gradient = drawn(rate, shape)
    assert first.shape == shape
    assert np.unique(first).tolist() == pytest.approx([0, 1 / (1 - rate)], rel=1e-6)
    assert np.array_equal(gradient, first)  # the same mask and the same scale
    assert abs((first == 0).mean() - rate) < 5 * (rate * (1 - rate) / first.size) ** 0.5


def test_a_rate_may_be_almost_1_and_the_seed_decides_the_masks() -> None:
    """Dropouts of a program have masks of their own. That the numbers of one are independent follows from Philox."""
    first, _, _ = drawn(0.999999, (1000, 1000))
    assert 0 < (first != 0).sum() < 100  # 15 expected
    first, second, _ = drawn(0.3, (1000, 1000))
    assert abs(np.corrcoef(first.reshape(-1) == 0, second.reshape(-1) == 0)[0, 1]) < 5 / first.size**0.5
    one, again, other = (drawn(0.2, (64, 65), seed)[0] for seed in (1, 1, 2))
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)


def test_other_integers_are_not_taken_for_keys() -> None:
    """Keys of dropouts are drawn together; another operation that draws two integers keeps its range."""
    with fresh_program() as (executor, main, _):
        x = paddle.ones([64])
        others = [paddle.randint(3, 5, [2], "int32") for _ in range(2)]
        fetched = [F.dropout(x * 1, 0.5) * 1, F.dropout(x * 2, 0.5) * 1, *(each + 0 for each in others)]
        use_compiled(main, {value.id for value in fetched})
        first, second, *drawn = executor.run(main, fetch_list=fetched)
    assert not np.array_equal(first == 0, second == 0)
    assert {*np.concatenate(drawn).tolist()} <= {3, 4}
