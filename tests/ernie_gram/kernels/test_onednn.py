"""Kernels of oneDNN in programs: the same results, except for rounding; and what must stay as it was."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable

import numpy as np
import paddle
import pytest
from paddle.nn import functional as F

from ernie_gram import paddle_private
from ernie_gram.graph import skip_gradients_of_additions
from ernie_gram.kernels import onednn
from ernie_gram.kernels.rewriting import use_kernels
from ernie_gram.model.layers import linear
from reader.errors import InputError
from tests.ernie_gram.kernels.test_compiled import numbers
from tests.support.bfloat16 import needs_bfloat16, rounded
from tests.support.static_programs import fresh_program

Shape = tuple[int, ...]
Results = tuple[list[np.ndarray], Counter[str]]


def compute(
    build: Callable[..., paddle.Tensor],
    values: list[np.ndarray],
    known: list[Shape],
    kinds: tuple[str, ...] = (),
    rounds: bool = False,
) -> Results:
    """Return the result of a network, and the gradients of its inputs for the last value as that of the result; and
    the numbers of operations by name.

    Args:
        known: shapes as the program knows them, with -1 for what it does not know.
    """
    with fresh_program() as (executor, main, _):
        tensors = [paddle.static.data(f"x{i}", shape) for i, shape in enumerate(known)]
        *inputs, out_gradient = tensors
        for tensor in inputs:
            tensor.stop_gradient = False
        out = build(*inputs) * 1.0
        gradients = paddle.static.gradients([out], inputs, [out_gradient])
        fetches = [out, *(gradient * 1.0 for gradient in gradients)]
        onednn.use_onednn(main, kinds, rounds, {value.id for value in fetches})
        feed = {tensor.name: value for tensor, value in zip(tensors, values, strict=True)}
        return executor.run(main, feed=feed, fetch_list=fetches), Counter(op.name() for op in main.global_block().ops)


@pytest.mark.parametrize("name", ["gelu", "softmax"])
def test_moved_operations_have_the_same_results(name: str) -> None:
    build, kinds = getattr(F, name), (name, f"{name}_grad")
    values, known = [numbers(3, 5, 40), numbers(3, 5, 40)], [(-1, -1, 40)] * 2
    expected, plain = compute(build, values, known)
    found, moved = compute(build, values, known, kinds)
    assert all(np.allclose(a, b, rtol=1e-5, atol=1e-6) for a, b in zip(found, expected, strict=True))
    assert [plain[f"pd_op.{kind}"] for kind in kinds] == [moved[f"onednn_op.{kind}"] for kind in kinds] == [1, 1]
    assert not any(moved[f"pd_op.{kind}"] for kind in kinds)


def product_gradients(x: np.ndarray, y: np.ndarray, out: np.ndarray, ty: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the gradients of x y or of x y^T, from their definition."""
    if ty:
        return np.einsum("...mn,...nk->...mk", out, y), np.einsum("...mn,...mk->...nk", out, x)
    gradient_x = np.einsum("...mn,...kn->...mk", out, y)
    rows = np.einsum("...mk,...mn->...kn", x, out)
    return gradient_x, rows.reshape(-1, *y.shape).sum(0) if y.ndim < x.ndim else rows


PRODUCTS = {
    # name: shapes of x and y as known, their sizes, and whether y is transposed
    "linear": ((-1, -1, 40), (3, 7, 40), (40, 48), (40, 48), False),
    "rows": ((-1, 40), (21, 40), (40, 48), (40, 48), False),
    "logits": ((-1, 40), (21, 40), (70, 40), (70, 40), True),
    "scores": ((-1, 2, -1, 40), (3, 2, 7, 40), (-1, 2, -1, 40), (3, 2, 9, 40), True),
    "context": ((-1, 2, -1, -1), (3, 2, 7, 9), (-1, 2, -1, 40), (3, 2, 9, 40), False),
}


@needs_bfloat16
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_and_their_gradients_have_factors_in_bfloat16_and_float32_sums(name: str) -> None:
    known_x, shape_x, known_y, shape_y, ty = PRODUCTS[name]
    x, y = numbers(*shape_x), numbers(*shape_y)
    out = numbers(*shape_x[:-1], shape_y[-2] if ty else shape_y[-1])
    known = [known_x, known_y, (-1,) * (out.ndim - 1) + (out.shape[-1],)]
    found, names = compute(lambda a, b: paddle.matmul(a, b, transpose_y=ty), [x, y, out], known, rounds=True)
    assert names["onednn_op.matmul"] == 3
    assert not names["pd_op.matmul"] + names["pd_op.matmul_grad"]
    assert names["onednn_op.cast"] == 3  # each factor is rounded once
    x, y, out = rounded(x), rounded(y), rounded(out)
    expected = [np.matmul(x, np.swapaxes(y, -1, -2) if ty else y), *product_gradients(x, y, out, ty)]
    for ours, reference in zip(found, expected, strict=True):
        assert ours.dtype == np.float32
        # Much closer than bfloat16's own rounding, 4e-3.
        assert np.allclose(ours, reference, rtol=1e-5, atol=1e-4)


@needs_bfloat16
def test_transposed_first_factors() -> None:
    """The gradient of a table by hand: p^T x, whose own gradients are not needed in pre-training but are right."""
    p, x, out = numbers(21, 70), numbers(21, 40), numbers(70, 40)
    known = [(-1, 70), (-1, 40), (70, 40)]
    found, names = compute(lambda a, b: paddle.matmul(a, b, transpose_x=True), [p, x, out], known, rounds=True)
    p, x, out = rounded(p), rounded(x), rounded(out)
    for ours, reference in zip(found, (p.T @ x, x @ out.T, p @ out), strict=True):
        assert np.allclose(ours, reference, rtol=1e-5, atol=1e-4)
    assert names["onednn_op.matmul"] == 3


@needs_bfloat16
def test_small_products_are_not_rounded() -> None:
    """Of 32 columns, as in the drawing of samples, and of one column, as in biases."""
    for size in (1, 32):
        values, known = [numbers(21, 70), numbers(70, size), numbers(21, size)], [(-1, 70), (70, size), (-1, size)]
        found, names = compute(paddle.matmul, values, known, rounds=True)
        assert not names["onednn_op.matmul"]
        assert np.allclose(found[0], values[0] @ values[1], rtol=1e-5, atol=1e-5)


@needs_bfloat16
def test_the_layout_of_a_product_ends_with_a_bias_in_its_memory() -> None:
    """For rows [B, H], as in a pooler, oneDNN's product has a layout of three axes, which its casts cannot read."""
    x, weight, bias = numbers(40, 48), numbers(48, 48) / 7, numbers(48)
    with fresh_program() as (executor, main, _):
        feed = {"x": x, "weight": weight, "bias": bias}
        shapes = {"x": (-1, 48), "weight": (48, 48), "bias": (48,)}
        inputs = [paddle.static.data(*each) for each in shapes.items()]
        inputs[0].stop_gradient = False
        out = F.tanh(linear(*inputs))
        (gradient,) = paddle.static.gradients([(out * out).sum()], inputs[:1])
        fetches = [out * 1.0, gradient * 1.0]
        skip_gradients_of_additions(main, fetches)
        use_kernels(main, "bfloat16", fetches)
        names = Counter(op.name() for op in main.global_block().ops)
        assert names["onednn_op.matmul"] == 2
        assert names["py_op.compiled_add_bias_0_1_in_place"] == 1
        found = executor.run(main, feed=feed, fetch_list=fetches)
    expected = np.tanh(rounded(x) @ rounded(weight) + bias)
    assert np.allclose(found[0], expected, atol=1e-5)
    of_product = rounded(2 * found[0] * (1 - found[0] ** 2))
    assert np.allclose(found[1], of_product @ rounded(weight).T, atol=1e-3)


def test_products_that_broadcast_are_not_rounded() -> None:
    values, known = (
        [numbers(3, 2, 7, 40), numbers(1, 2, 40, 48), numbers(3, 2, 7, 48)],
        [(-1, 2, -1, 40), (1, 2, 40, 48)],
    )
    found, names = compute(paddle.matmul, values, [*known, (-1, 2, -1, 48)], rounds=True)
    assert not names["onednn_op.matmul"]
    assert found[2].shape == (1, 2, 40, 48)


@pytest.mark.parametrize("setting", ["ERNIE_GRAM_ONEDNN", "has_onednn"])
def test_without_onednn_products_in_bfloat16_are_refused(monkeypatch: pytest.MonkeyPatch, setting: str) -> None:
    if setting == "ERNIE_GRAM_ONEDNN":
        monkeypatch.setenv(setting, "0")
    else:
        monkeypatch.setattr(paddle_private, setting, lambda: False)
    with fresh_program() as (_, main, _):
        F.gelu(paddle.static.data("x", [-1, 40]))
        use_kernels(main, "float32", [])
        assert [op.name() for op in main.global_block().ops][-1] == "pd_op.gelu"
        with pytest.raises(InputError, match=r"no products in bfloat16 on this CPU: .*; use float32"):
            use_kernels(main, "bfloat16", [])


def test_fetched_values_stay() -> None:
    x = numbers(4, 40)
    with fresh_program() as (executor, main, _):
        data = paddle.static.data("x", [-1, 40])
        fetched, other = F.gelu(data), F.gelu(data + 1.0)
        total = other.sum()
        onednn.use_onednn(main, ("gelu",), True, {fetched.id, total.id})
        names = Counter(op.name() for op in main.global_block().ops)
        assert names["pd_op.gelu"] == names["onednn_op.gelu"] == 1
        value, _ = executor.run(main, feed={"x": x}, fetch_list=[fetched, total])
    assert value == pytest.approx(0.5 * x * (1 + np.vectorize(math.erf)(x / 2**0.5)), rel=1e-4, abs=1e-5)


def test_a_pass_that_does_something_else_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onednn, "_PASS", "identity_op_clean_pass")
    with fresh_program() as (_, main, _):
        F.gelu(paddle.static.data("x", [-1, 40]))
        with pytest.raises(InputError, match="0 of 1 operations; set ERNIE_GRAM_ONEDNN=0"):
            onednn.use_onednn(main, ("gelu",), False, ())


def test_the_kernels_were_tested_with_the_installed_version_of_paddle() -> None:
    """If this fails: run this file and the benchmark pretrain_step with the new version, then change the number."""
    assert paddle.__version__.startswith("3.3.")
