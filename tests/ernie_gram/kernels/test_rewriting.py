"""Programs with compiled operations: the same results as Paddle's own, and what must stay as it was; then biases."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager

import numpy as np
import paddle
import pytest
from ernie_gram.kernels.rewriting import use_compiled
from paddle.nn import functional as F

from ernie_gram.graph import MarkedLayer, skip_gradients_of_additions
from ernie_gram.kernels import custom_operations, operations
from ernie_gram.model.layers import linear
from ernie_gram.training.program import open_program
from reader.batches.fields import Field
from reader.system.compiled import numba
from tests.ernie_gram.kernels.test_compiled import numbers
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


def run_both(
    build: Callable[[paddle.Tensor, paddle.Tensor], list[paddle.Tensor]], rows: tuple[int, int] = (40, 40)
) -> list[str]:
    """Check that a program has the results of Paddle's operations; return the names of its operations.

    `build` gets x [-1, 40] and y [-1, 40], which have these rows when it is run; what it returns is fetched.
    """
    random, results, names = np.random.default_rng(1), [], []
    feed = {name: random.standard_normal((n, 40), dtype=np.float32) for name, n in zip("xy", rows, strict=True)}
    for rewrites in (False, True):
        with fresh_program() as (executor, main, _):
            inputs = [paddle.static.data(name, [-1, 40]) for name in feed]
            for value in inputs:
                value.stop_gradient = False
            fetches = build(*inputs)
            if rewrites:
                use_compiled(main, {value.id for value in fetches})
            names = [op.name() for op in main.global_block().ops]
            paddle.seed(1)
            results.append(executor.run(main, feed=feed, fetch_list=fetches))
    for theirs, ours in zip(*results, strict=True):
        assert np.allclose(ours, theirs, rtol=1e-4, atol=1e-5)
    return names


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


def test_a_sum_of_vectors_or_of_columns_is_no_addition_of_a_bias() -> None:
    def build(x: paddle.Tensor, y: paddle.Tensor) -> list[paddle.Tensor]:
        return [(y[0] + y[1]) * 1.0, (x[:, :1] + y[0]) * 1.0]

    assert not any("add_bias" in name for name in run_both(build))


def test_the_gradient_of_an_addition_stays_if_that_of_the_rows_is_read_too() -> None:
    def build(x: paddle.Tensor, y: paddle.Tensor) -> list[paddle.Tensor]:
        rows, bias = x * 2.0, y[2] * 1.0
        return [each * 1.0 for each in paddle.static.gradients([((rows + bias) ** 2).sum()], [rows, bias])]

    assert "pd_op.add_grad" in run_both(build)


def test_sums_are_computed_by_the_gelu_or_the_layer_norm_that_reads_them() -> None:
    def build(x: paddle.Tensor, y: paddle.Tensor) -> list[paddle.Tensor]:
        total = x + linear(x, y[:1] * y[1:2].t(), y[2])
        gelu = F.gelu(linear(x, y[5:6] * y[1:2].t(), y[2]))
        return [gelu * 1.0, F.layer_norm(total, [40], y[3], y[4]) * 1.0]

    names = run_both(build)
    assert "py_op.compiled_biased_gelu_0_1_in_place" in names
    assert any(name.startswith("py_op.compiled_normalised_sum") and name.endswith("_in_place") for name in names)
    assert not {"pd_op.gelu", "pd_op.layer_norm", "pd_op.add"} & set(names)


@pytest.mark.parametrize("reader", ["gradient", "fetch", "another", "another of the bias", "approximation", "no scale"])
def test_sums_that_others_read_too_are_not_part_of_what_reads_them(reader: str) -> None:
    def build(x: paddle.Tensor, y: paddle.Tensor) -> list[paddle.Tensor]:
        inner, last = (linear(x, y[row : row + 1] * y[1:2].t(), y[2]) for row in (0, 5))
        total = x + last
        scale = None if reader == "no scale" else y[3]
        found = [F.gelu(inner, reader == "approximation"), F.layer_norm(total, [40], scale, y[4])]
        if reader == "gradient":
            found += paddle.static.gradients([(found[0] * found[1]).sum()], [x])
        if reader == "another":
            found += [inner * 2.0, total * 2.0]
        if reader == "another of the bias":
            found += [inner * 2.0, last * 2.0]
        return [each * 1.0 for each in found] + [inner, total] * (reader == "fetch")

    names = run_both(build)
    assert ("pd_op.gelu" in names) == (reader not in ("no scale", "gradient"))
    assert ("pd_op.layer_norm" in names) == (reader != "approximation")


def test_products_that_are_read_later_are_not_overwritten() -> None:
    def build(x: paddle.Tensor, y: paddle.Tensor) -> list[paddle.Tensor]:
        products = [paddle.matmul(x, y[row : row + 1] * y[1:2].t()) for row in (0, 5, 3)]
        inner, last, alone = (each + y[2] for each in products)
        found = [F.gelu(inner), F.layer_norm(x + last, [40], y[3], y[4]), alone]
        return [each * 1.0 for each in [*found, *products]]

    names = run_both(build)
    assert {"py_op.compiled_biased_gelu_0_1", "py_op.compiled_add_bias_0_1"} <= set(names)
    assert any(name.startswith("py_op.compiled_normalised_sum") and not name.endswith("_in_place") for name in names)


def test_memory_of_the_feeds_is_not_overwritten() -> None:
    names = run_both(lambda x, y: [(x + y[2]) * 1.0])
    assert "py_op.compiled_add_bias_0_1" in names


@pytest.mark.parametrize("reads_sum", [False, True])
def test_the_gradient_of_gelu_reads_the_rows_and_the_bias_unless_their_sum_is_there(reads_sum: bool) -> None:
    def build(x: paddle.Tensor, y: paddle.Tensor) -> list[paddle.Tensor]:
        weight, bias = y[:1] * y[1:2].t(), y[2] * 1.0
        total = linear(x, weight, bias)
        loss = F.gelu(total).pow(2).sum() + (total.sum() if reads_sum else 0)
        fetches = [each * 1.0 for each in paddle.static.gradients([loss], [weight, bias])]
        # As in every program: so only the gelu and its gradient read the product.
        skip_gradients_of_additions(paddle.static.default_main_program(), fetches)
        return fetches

    names = set(run_both(build))
    assert ("py_op.compiled_biased_gelu_backward_0_1_2" in names) == (not reads_sum)
    assert ({"pd_op.gelu", "pd_op.gelu_grad"} <= names) == reads_sum


def test_layers_that_may_be_recomputed_keep_their_layer_norms() -> None:
    def build(x: paddle.Tensor, y: paddle.Tensor) -> list[paddle.Tensor]:
        with MarkedLayer():
            total = x + linear(x, y[:1] * y[1:2].t(), y[2])
            return [F.layer_norm(total, [40], y[3], y[4]) * 1.0]

    assert "pd_op.layer_norm" in run_both(build)
