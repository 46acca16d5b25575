"""An encoder layer as one operation: its gradients with dropout, recompute, rounding, packed weights, and its checks.

tests/ernie_gram/model/test_fused_layers.py compares it with the layer of single operations.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import paddle
import pytest

from ernie_gram.kernels import products
from ernie_gram.kernels.encoder_layers import Given, Kept, Layer, Parameters, Settings, rows_after
from ernie_gram.kernels.layer_operations import encoder_layers
from ernie_gram.paddle_private import eager_guard
from tests.support.bfloat16 import needs_bfloat16
from tests.support.static_programs import fresh_program

WIDTH, INNER, HEADS = 16, 24, 2
SETTINGS = Settings(HEADS, "gelu", 1e-5, 0.3, 0.4, False)
# Seven rows of two sequences, and behind them two query rows of each.
STARTS, SLOTS = np.array([0, 3, 7], np.int64), np.array([[1, 2], [0, 3]], np.int64)
ROWS = 11
NO_KEY = np.empty(0, np.int32)


def parameters(random: np.random.Generator, width: int = WIDTH, inner: int = INNER) -> Parameters:
    """Return drawn parameters of a layer."""
    sizes = {"inner": (width, inner), "inner_bias": (inner,), "outer": (inner, width)}
    shapes = [(width, width), (width,)] * 4 + [(width,)] * 2 + list(sizes.values()) + [(width,)] * 3
    return Parameters._make(random.standard_normal(shape, dtype=np.float32) for shape in shapes)


class Program:
    """The gradients of a layer for the sum of its results times drawn factors."""

    def __init__(
        self,
        *,
        recomputes: bool = False,
        trains_bias: bool = True,
        wanted: list[int] | None = None,
        activation: str = "gelu",
    ) -> None:
        random = np.random.default_rng(1)
        layer = parameters(random)._asdict()
        biases = {"bias": random.standard_normal((1, HEADS, 4, 4)), "self_bias": random.standard_normal(HEADS)}
        self.feed = {"rows": random.standard_normal((ROWS, WIDTH)), **biases, **layer}
        self.feed = {name: values.astype(np.float32) for name, values in self.feed.items()}
        count = ROWS if wanted is None else len(wanted) + SLOTS.size
        factors = random.standard_normal((count, WIDTH)).astype(np.float32)
        with fresh_program() as (self.executor, self.main, _):
            inputs = {name: paddle.static.data(name, list(values.shape)) for name, values in self.feed.items()}
            for name, value in inputs.items():
                value.stop_gradient = not trains_bias and "bias" in name and name in biases
            places = [None if each is None else paddle.assign(np.array(each)) for each in (STARTS, SLOTS, wanted)]
            given = Given(places[0], inputs["bias"], inputs["self_bias"], *places[1:])
            key, settings = paddle.assign(np.array([5, -6], np.int32)), SETTINGS._replace(activation=activation)
            out = encoder_layers(inputs["rows"], [[inputs[name] for name in layer]], given, settings, key, recomputes)
            total = (out * paddle.assign(factors)).sum()
            self.trained = [name for name, value in inputs.items() if not value.stop_gradient]
            gradients = paddle.static.gradients([total], [inputs[name] for name in self.trained])
            self.fetched = [total, *gradients]

    def run(self, **changes: np.ndarray) -> tuple[float, dict[str, np.ndarray]]:
        """Return the sum and the gradients, after additions to inputs."""
        feed = {name: self.feed[name] + changes.get(name, np.float32(0)) for name in self.feed}
        total, *gradients = self.executor.run(self.main, feed=feed, fetch_list=self.fetched)
        return float(total), dict(zip(self.trained, gradients, strict=True))


@pytest.mark.parametrize("wanted", [None, [0, 4, 5]])
@pytest.mark.parametrize("activation", ["gelu", "relu"])
def test_gradients_are_those_of_differences(wanted: list[int] | None, activation: str) -> None:
    program, random = Program(wanted=wanted, activation=activation), np.random.default_rng(2)
    _, gradients = program.run()
    for name, gradient in gradients.items():
        way = random.standard_normal(gradient.shape).astype(np.float32)
        step = np.float32(1e-3 / np.sqrt(way.size)) * way
        difference = (program.run(**{name: step})[0] - program.run(**{name: -step})[0]) / 2
        assert (gradient * step).sum() == pytest.approx(difference, rel=3e-2, abs=2e-4), name


def test_recompute_changes_no_bit() -> None:
    kept, again = (Program(recomputes=recomputes).run() for recomputes in (False, True))
    assert kept[0] == again[0]
    for name, gradient in kept[1].items():
        np.testing.assert_array_equal(gradient, again[1][name], err_msg=name)


def test_biases_that_are_not_trained_get_no_gradients() -> None:
    """In one process with a layer whose biases are trained: they are operations of different names."""
    all_trained, others = Program().run(), Program(trains_bias=False).run()
    assert set(all_trained[1]) - set(others[1]) == {"bias", "self_bias"}
    for name, gradient in others[1].items():
        np.testing.assert_array_equal(gradient, all_trained[1][name], err_msg=name)


def inferred(layers: list[Parameters], settings: Settings, x: np.ndarray) -> np.ndarray:
    out, given = np.full_like(x, np.nan), Given(np.array([0, 5, len(x)]), None, None, None, None)
    with eager_guard():
        rows_after([Layer(layer, given, None, settings) for layer in layers], x, out, [])
    return out


@pytest.mark.parametrize("rounds", [False, pytest.param(True, marks=needs_bfloat16)])
def test_packed_weights_give_the_same_rows(rounds: bool) -> None:
    random = np.random.default_rng(3)
    layers, x = [parameters(random, 48, 64) for _ in range(3)], random.standard_normal((37, 48), dtype=np.float32)
    settings = SETTINGS._replace(heads=4, dropout=0.0, attention_dropout=0.0, rounds=rounds)
    plain = inferred(layers, settings, x)
    matrices = {each.ctypes.data: each for layer in layers for each in layer if each.ndim == 2}
    packed = {address: products.pack(matrix, rounds) for address, matrix in matrices.items()}
    assert len(packed) == 3 * 6
    with products.using({address: each for address, each in packed.items() if each}):
        np.testing.assert_allclose(inferred(layers, settings, x), plain, atol=1e-2 if rounds else 1e-5)
    # Without the packed matrices, whose own ones are now others.
    for matrix in matrices.values():
        matrix *= 2
    assert np.abs(inferred(layers, settings, x) - plain).max() > 0.1
    assert products.pack(np.ones((products.SMALL, 64), np.float32), rounds) is None


@needs_bfloat16
def test_rounded_factors_give_almost_the_same_rows_and_gradients() -> None:
    random = np.random.default_rng(4)
    layer, x = parameters(random, 48, 64), random.standard_normal((9, 48), dtype=np.float32)
    layer = Parameters._make(each * np.float32(0.2) if each.ndim == 2 else each for each in layer)
    gradient, given, results = random.standard_normal(x.shape, dtype=np.float32), None, []
    given = Given(np.array([0, 4, 9]), None, None, None, None)
    for rounds in (False, True):
        computed = Layer(layer, given, np.array([1, 2], np.int32), SETTINGS._replace(heads=4, rounds=rounds))
        shapes = [(9, 48), (9, 4), (9, 144), (9, 48), (9, 48), (9, 64), (9, 64), (9, 48)]
        kept, out, of_x = Kept._make(np.empty(each, np.float32) for each in shapes), np.empty_like(x), np.empty_like(x)
        found = Parameters._make(map(np.empty_like, layer))
        with eager_guard():
            computed.forward(x, out, kept)
            computed.backward(x, kept, gradient, of_x, found, None, None)
        results.append([out, of_x, *found])
    for ours, exact in zip(results[1], results[0], strict=True):
        # The gradient of the biases of keys is 0.
        assert np.abs(ours - exact).max() < 0.03 * max(1, np.abs(exact).max())
    assert not np.array_equal(results[0][0], results[1][0])


@pytest.mark.parametrize(
    ("starts", "slots", "reason"),
    [
        ([0, 2, 5], [0, 1, 3, 0], "not in any"),
        ([0, 2, 5], [0, -1, 2, 0], "not in"),
        ([0, 2, 5], [0], "do not fill the rows"),
        ([0, 5, 5], [0, 1, 2, 0], "without a context"),
        ([0, 1, 2, 5], [0, 1, 2, 0], "as many query rows"),
        ([0, 6, 7], [0, 1], "longer than the bias"),
    ],
)
def test_rows_that_the_compiled_function_would_read_elsewhere(starts: list[int], slots: list[int], reason: str) -> None:
    bias: Any = np.zeros((1, 2, 5, 5), np.float32)
    given = Given(np.array(starts), bias, None, np.array(slots), None)
    layer = Layer(parameters(np.random.default_rng(0)), given, NO_KEY, SETTINGS)
    with pytest.raises(AssertionError, match=reason):
        list(layer._attention_arguments(np.zeros((9, 3 * WIDTH), np.float32)))


def test_dropouts_of_a_layer_have_masks_and_rates_of_their_own() -> None:
    given = Given(np.array([0, 3]), None, None, np.array([[0, 1]]), None)
    layer = Layer(parameters(np.random.default_rng(0)), given, np.array([3, -4], np.int32), SETTINGS)
    (_, context), (_, own) = layer._attention_arguments(np.zeros((5, 3 * WIDTH), np.float32))
    keys = [context[6], own[6], layer._mask(1)[0], layer._mask(2)[0]]
    assert len({key.tobytes() for key in keys}) == 4
    for arguments in (context, own):
        assert arguments[7:9] == (26214, pytest.approx(1 / 0.6))  # 0.4 of 65,536
    assert layer._mask(1)[1:] == layer._mask(2)[1:] == (19661, pytest.approx(1 / 0.7))
