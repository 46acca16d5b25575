"""Programs with compiled operations: the same results as Paddle's own, and what must stay as it was."""

from __future__ import annotations

import signal
from collections import Counter
from contextlib import AbstractContextManager

import numpy as np
import paddle
import pytest
from paddle.nn import functional as F

from ernie_gram.graph import skip_gradients_of_additions
from ernie_gram.kernels import custom_operations, operations
from ernie_gram.kernels.rewriting import use_compiled
from ernie_gram.model.layers import linear
from ernie_gram.training.program import open_program
from reader.batches.fields import Field
from reader.system.compiled import numba
from tests.ernie_gram.kernels.test_compiled import numbers
from tests.support.rewritten_programs import run_both
from tests.support.static_programs import fresh_program, fresh_scope

FEED = {
    "x": numbers(3, 2, 5, 48),
    "bias": numbers(3, 2, 5, 48),
    "keys": numbers(3, 2, 48, 48),
    "norm_scale": numbers(48),
    "norm_bias": numbers(48),
    "weight": numbers(48, 40),
    "linear_bias": numbers(40),
}


def compute(rate: float, rewrites: bool, adds: bool = True) -> tuple[list[np.ndarray], Counter[str]]:
    """Return weights, outputs and gradients of a network like an attention; and the numbers of operations by name.

    Both dropouts are of the same rate; their outputs are the first two results.
    """
    with fresh_program() as (executor, main, _):
        shapes = {name: value.shape for name, value in FEED.items()}
        shapes |= {"x": (-1, 2, -1, 48), "bias": (-1, 2, -1, 48), "keys": (-1, 2, 48, 48)}
        inputs = {name: paddle.static.data(name, shape) for name, shape in shapes.items()}
        for value in inputs.values():
            value.stop_gradient = False
        normal = F.layer_norm(inputs["x"], [48], inputs["norm_scale"], inputs["norm_bias"])
        scores = paddle.matmul(normal, inputs["keys"], transpose_y=True)
        weights = F.softmax(scores + inputs["bias"] if adds else scores)
        weights = F.dropout(weights, rate) if rate else weights
        out = linear(weights, inputs["weight"], inputs["linear_bias"])
        out = F.dropout(out, rate) if rate else out
        gradients = paddle.static.gradients([(out * out).sum()], list(inputs.values()))
        fetches = [each * 1.0 for each in (weights, out, *gradients) if each is not None]
        # As in every program: the gradient of an addition would read what is added.
        skip_gradients_of_additions(main, fetches)
        if rewrites:
            use_compiled(main, {value.id for value in fetches})
        paddle.seed(1)
        names = Counter(op.name() for op in main.global_block().ops)
        return executor.run(main, feed=FEED, fetch_list=fetches), names


def count(names: Counter[str], name: str) -> int:
    return sum(times for each, times in names.items() if name in each)


@pytest.mark.parametrize("adds", [True, False])
def test_results_are_those_of_paddle(adds: bool) -> None:
    expected, plain = compute(0, rewrites=False, adds=adds)
    found, names = compute(0, rewrites=True, adds=adds)
    for ours, theirs in zip(found, expected, strict=True):
        assert np.allclose(ours, theirs, rtol=1e-5, atol=1e-5 * np.abs(theirs).max())
    assert (plain["pd_op.layer_norm_grad"], names["pd_op.layer_norm_grad"]) == (1, 0)
    assert names["pd_op.add"] == plain["pd_op.add"] - 1
    assert names["pd_op.add_grad"] == plain["pd_op.add_grad"] - 1
    assert count(names, "add_bias") == count(names, "sum_of_rows") == 1


def test_gradients_with_dropout() -> None:
    """Gradients are those of a network that multiplies by the same masks, in double precision."""
    found, names = compute(0.25, rewrites=True)
    assert not count(names, "pd_op.dropout")
    assert count(names, "compiled_dropout") == count(names, "compiled_masked") == 2
    dropped, out, *gradients = found
    feed = {name: value.astype(np.float64) for name, value in FEED.items()}

    def forward(values: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        x = values["x"]
        normal = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
        normal = normal * values["norm_scale"] + values["norm_bias"]
        scores = normal @ np.swapaxes(values["keys"], -1, -2) + values["bias"]
        powers = np.exp(scores - scores.max(-1, keepdims=True))
        weights = powers / powers.sum(-1, keepdims=True) * (dropped != 0) / 0.75
        return weights, (weights @ values["weight"] + values["linear_bias"]) * (out != 0) / 0.75

    for ours, reference in zip((dropped, out), forward(feed), strict=True):
        assert np.allclose(ours, reference, rtol=1e-4, atol=1e-5)
    assert 0.1 < (dropped == 0).mean() < 0.4
    for name, gradient in zip(feed, gradients, strict=True):
        index = tuple(size // 2 for size in gradient.shape)
        step = np.zeros(gradient.shape)
        step[index] = 1e-5
        two = [(forward({**feed, name: feed[name] + sign * step})[1] ** 2).sum() for sign in (1, -1)]
        assert gradient[index] == pytest.approx((two[0] - two[1]) / 2e-5, rel=1e-3, abs=1e-3)


def test_what_is_fetched_stays() -> None:
    def build(x: paddle.Tensor, y: paddle.Tensor) -> list[paddle.Tensor]:
        return [x + y[0], (x + y[1]) * 1.0, F.dropout(y, 0.5)]

    names = Counter(run_both(build))
    assert names["pd_op.add"] == count(names, "compiled_add_bias") == names["pd_op.dropout"] == 1


def test_other_dtypes_and_norms_stay() -> None:
    with fresh_program() as (_, main, _):
        F.dropout(paddle.static.data("x", [-1, 40], "float64"), 0.5)
        z = paddle.static.data("z", [-1, 40])
        z.stop_gradient = False
        paddle.static.gradients([F.layer_norm(z, [40])], [z])
        before = [op.name() for op in main.global_block().ops]
        use_compiled(main, ())
        assert [op.name() for op in main.global_block().ops] == before


def test_an_input_without_rows() -> None:
    run_both(lambda x, y: [F.gelu(x + y[0]) * 1.0, F.dropout(x, 0.5) * 1.0], (0, 1))


def test_an_exception_in_an_operation_is_raised_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    with fresh_scope() as executor:
        with open_program([Field("x", "AB", "float32", "")]) as opened:
            program = opened.finish({"out": F.dropout(opened.feeds["x"], 0.5) * 1.0})
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
            program = opened.finish({"out": F.dropout(opened.feeds["x"], 0.5) * 1.0})
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


def test_a_norm_over_two_axes() -> None:
    def build(x: paddle.Tensor, y: paddle.Tensor) -> list[paddle.Tensor]:
        scale, bias = (value[:1].flatten() * 1.0 for value in (y, y + 1))
        normal = F.layer_norm(x.reshape([-1, 8, 5]), [8, 5], scale, bias)
        gradients = paddle.static.gradients([(normal * normal * normal).sum()], [x, y])
        return [gradient * 1.0 for gradient in gradients]

    assert any(name.startswith("py_op.compiled_layer_norm") for name in run_both(build))


@pytest.mark.parametrize("threads", ["1", ""])
def test_operations_use_as_many_threads_as_paddle(monkeypatch: pytest.MonkeyPatch, threads: str) -> None:
    before = numba.get_num_threads()
    monkeypatch.setenv("OMP_NUM_THREADS", threads)
    numba.set_num_threads(numba.config.NUMBA_NUM_THREADS)
    try:
        assert custom_operations._guarded(numba.get_num_threads) == 1
    finally:
        numba.set_num_threads(before)
