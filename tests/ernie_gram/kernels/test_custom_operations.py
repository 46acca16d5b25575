"""Operations of this project have a name of their own in Paddle."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.static_programs import fresh_program

import paddle  # isort: skip
from ernie_gram.kernels import operations  # isort: skip
from ernie_gram.kernels.custom_operations import Result, add_operation  # isort: skip


def gradients(trains_bias: bool) -> list[np.ndarray]:
    """Return the gradients of attention for its input, and for its bias if that is trained."""
    random = np.random.default_rng(0)
    feed = {
        "projected": random.standard_normal((1, 5, 24), dtype=np.float32),
        "bias": random.standard_normal((1, 2, 3, 3), dtype=np.float32),
    }
    with fresh_program() as (executor, main, _):
        projected, bias = (paddle.static.data(name, list(value.shape)) for name, value in feed.items())
        projected.stop_gradient, bias.stop_gradient = False, not trains_bias
        starts = paddle.assign(np.array([0, 2, 5], np.int64))
        given = operations.Attending(projected, bias, None, starts, None)
        out = operations.attention_with_gradient(given, 2, 0.0)
        wanted = [projected, bias] if trains_bias else [projected]
        return executor.run(main, feed=feed, fetch_list=paddle.static.gradients([(out * out).sum()], wanted))


def test_attention_with_a_bias_that_is_trained_and_with_one_that_is_not_in_one_process() -> None:
    of_projected, of_bias = gradients(trains_bias=True)
    (alone,) = gradients(trains_bias=False)
    np.testing.assert_array_equal(alone, of_projected)
    assert np.abs(of_bias).max() > 0
    np.testing.assert_array_equal(gradients(trains_bias=True)[1], of_bias)


def test_gradients_with_dropout_and_query_rows_are_those_of_differences() -> None:
    """Seven rows of two sequences, and behind them two query rows of each."""
    random = np.random.default_rng(1)
    feed = {name: random.standard_normal(shape) for name, shape in {"rows": (1, 11, 24), "bias": (1, 2, 4, 4)}.items()}
    feed["self_bias"] = random.standard_normal(2)
    feed = {name: value.astype(np.float32) for name, value in feed.items()}
    ways = {name: random.standard_normal(value.shape).astype(np.float32) for name, value in feed.items()}
    factors = random.standard_normal((1, 11, 8)).astype(np.float32)
    with fresh_program() as (executor, main, _):
        inputs = [paddle.static.data(name, list(value.shape)) for name, value in feed.items()]
        for value in inputs:
            value.stop_gradient = False
        places = (paddle.assign(np.array(each, np.int64)) for each in ([0, 3, 7], [[1, 2], [0, 3]]))
        out = operations.attention_with_gradient(operations.Attending(*inputs, *places), 2, 0.4)
        total = (out * paddle.assign(factors)).sum()
        found = [total, *paddle.static.gradients([total], inputs)]

        def run(change: dict[str, np.ndarray]) -> list[np.ndarray]:
            paddle.seed(3)  # the same masks
            return executor.run(main, feed={name: feed[name] + change.get(name, 0) for name in feed}, fetch_list=found)

        gradients = dict(zip(feed, run({})[1:], strict=True))
        for name, way in ways.items():
            step = 2e-3 * way
            difference = (run({name: step})[0] - run({name: -step})[0]) / 4e-3
            assert (gradients[name] * way).sum() == pytest.approx(difference, rel=1e-2, abs=1e-2), name


@pytest.mark.parametrize(
    ("starts", "slots", "reason"),
    [
        ([0, 2, 5], [0, 1, 3, 0], "not in any"),
        ([0, 2, 5], [0, -1, 2, 0], "not in"),
        ([0, 2, 5], [0], "do not fill the rows"),
        ([0, 5, 5], [0, 1, 2, 0], "without a context"),
        ([0, 1, 2, 5], [0, 1, 2, 0], "as many query rows"),
    ],
)
def test_query_rows_in_slots_that_no_sequence_has(starts: list[int], slots: list[int], reason: str) -> None:
    """The compiled function would read elsewhere."""
    rows, places = np.zeros((9, 24), np.float32), (np.array(starts), np.array(slots))
    with pytest.raises(AssertionError, match=reason):
        list(operations._attention_arguments([rows, None, None, *places, None], 2, 4, 0.0))


def test_a_bias_of_fewer_slots_than_a_sequence_has() -> None:
    rows, bias = np.zeros((5, 24), np.float32), np.zeros((1, 2, 2, 2), np.float32)
    with pytest.raises(AssertionError, match="longer than the bias"):
        list(operations._attention_arguments([rows, bias, None, np.array([0, 2, 5]), None, None], 2, 4, 0.0))


def test_an_operation_of_another_meaning_needs_another_name() -> None:
    with fresh_program():
        x = paddle.static.data("x", [2])
        add_operation("for_this_test", np.copyto, (x,), (Result(0),))
        add_operation("for_this_test", np.copyto, (x,), (Result(0),))
        with pytest.raises(AssertionError, match="for_this_test"):
            add_operation("for_this_test", np.copyto, (x,), (Result(0), Result(0)))
