"""Operations of programs: dropout, the gradient of a layer norm, exceptions, and names."""

from __future__ import annotations

import signal
from contextlib import AbstractContextManager

import numpy as np
import paddle
import pytest
from paddle.nn import functional as F

from ernie_gram.kernels import custom_operations, operations
from ernie_gram.kernels.custom_operations import Result, add_operation
from ernie_gram.model import layers
from ernie_gram.training.program import open_program
from reader.batches.fields import Field
from reader.system.compiled import numba
from tests.ernie_gram.kernels.test_compiled import numbers
from tests.support.static_programs import fresh_program, fresh_scope


def drawn(rate: float, shape: tuple[int, ...], seed: int = 1) -> list[np.ndarray]:
    """Return what a program gives for x of ones: two dropouts of x, and the gradient of the sum of the first."""
    with fresh_program() as (executor, main, _):
        given = paddle.static.data("x", [-1] * len(shape))
        given.stop_gradient = False
        first, second = (operations.dropout(given * 1.0, rate) for _ in range(2))
        (gradient,) = paddle.static.gradients([first.sum()], [given])
        paddle.seed(seed)
        return executor.run(main, feed={"x": np.ones(shape, np.float32)}, fetch_list=[first, second, gradient])


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


@pytest.mark.parametrize("shape", [(3, 5, 48), (0, 48)])
def test_gradients_of_a_layer_norm_are_those_of_paddle(shape: tuple[int, ...]) -> None:
    feed, results = {"x": 3 + numbers(*shape), "scale": numbers(48), "shift": numbers(48)}, []
    for norm in (operations.layer_norm, lambda x, *others: F.layer_norm(x, [48], *others)):
        with fresh_program() as (executor, main, _):
            inputs = [paddle.static.data(name, [-1] * (values.ndim - 1) + [48]) for name, values in feed.items()]
            for value in inputs:
                value.stop_gradient = False
            normal = norm(*inputs, 1e-5)
            gradients = paddle.static.gradients([(normal * normal * normal).sum()], inputs)
            results.append(executor.run(main, feed=feed, fetch_list=[normal, *gradients]))
    for ours, theirs in zip(*results, strict=True):
        assert np.allclose(ours, theirs, rtol=1e-4, atol=1e-4)


def test_an_exception_in_an_operation_is_raised_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    with fresh_scope() as executor:
        with open_program([Field("x", "AB", "float32", "")]) as opened:
            program = opened.finish({"out": layers.dropout(opened.feeds["x"], 0.5, True) * 1.0})
        compute, errors = operations.compiled.dropout, list[BaseException]()

        def failing(*arguments: np.ndarray) -> None:
            if errors:
                raise errors.pop(0)
            compute(*arguments)

        monkeypatch.setattr(operations.compiled, "dropout", failing)
        batch = {"x": numbers(3, 40)}
        # The handler of a signal may raise the first two.
        for kind in (KeyboardInterrupt, SystemExit, MemoryError):
            for run in (program.run, program.step):
                errors.append(kind("as it is"))
                with pytest.raises(kind, match="as it is"):
                    run(executor, batch)
        value = program.run(executor, batch)["out"]
    assert np.array_equal(value, np.where(value == 0, 0, 2 * batch["x"]))


def test_ctrl_c_takes_effect_at_the_end_of_a_program(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Also if it arrives outside of what an operation computes, where Paddle would print a traceback."""
    with fresh_scope() as executor:
        with open_program([Field("x", "AB", "float32", "")]) as opened:
            program = opened.finish({"out": layers.dropout(opened.feeds["x"], 0.5, True) * 1.0})
        mode, interrupts = custom_operations.eager_guard, [2]

        def interrupted() -> AbstractContextManager[None]:
            for _ in range(interrupts.pop() if interrupts else 0):
                signal.raise_signal(signal.SIGINT)
            return mode()

        monkeypatch.setattr(custom_operations, "eager_guard", interrupted)
        with pytest.raises(KeyboardInterrupt):
            program.run(executor, {"x": numbers(3, 40)})
        assert "Traceback" not in capfd.readouterr().err
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        assert program.run(executor, {"x": numbers(3, 40)})["out"].any()


@pytest.mark.parametrize("threads", ["1", ""])
def test_operations_use_as_many_threads_as_paddle(monkeypatch: pytest.MonkeyPatch, threads: str) -> None:
    before = numba.get_num_threads()
    monkeypatch.setenv("OMP_NUM_THREADS", threads)
    numba.set_num_threads(numba.config.NUMBA_NUM_THREADS)
    try:
        assert custom_operations._guarded(numba.get_num_threads) == 1
    finally:
        numba.set_num_threads(before)


def test_an_operation_of_another_meaning_has_another_name() -> None:
    with fresh_program() as (_, main, _):
        x = paddle.static.data("x", [2])
        for results in ((Result(0),), (Result(0),), (Result(0), Result(0))):
            add_operation("for_this_test", np.copyto, (x,), results)
        first, again, other = (each.name() for each in main.global_block().ops if "for_this_test" in each.name())
    assert first == again != other
