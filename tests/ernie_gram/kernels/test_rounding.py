"""Products in bfloat16 in programs, and their gradients; and what must stay as it was."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import paddle
import pytest

from ernie_gram.kernels import rewriting
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
        rewriting.round_factors(main, {value.id for value in fetches})
        feed = {tensor.name: value for tensor, value in zip(tensors, values, strict=True)}
        names = Counter(op.name().split("_0")[0].removeprefix("py_op.compiled_") for op in main.global_block().ops)
        return executor.run(main, feed=feed, fetch_list=fetches), names


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
}


@needs_bfloat16
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_and_their_gradients_have_factors_in_bfloat16_and_float32_sums(name: str) -> None:
    known_x, shape_x, known_y, shape_y, ty = PRODUCTS[name]
    x, y = numbers(*shape_x), numbers(*shape_y)
    out = numbers(*shape_x[:-1], shape_y[-2] if ty else shape_y[-1])
    known = [known_x, known_y, (-1,) * (out.ndim - 1) + (out.shape[-1],)]
    found, names = compute(lambda a, b: paddle.matmul(a, b, transpose_y=ty), [x, y, out], known)
    assert not names["pd_op.matmul"] + names["pd_op.matmul_grad"]
    assert names["rounded"] == 3  # each factor is rounded once
    x, y, out = rounded(x), rounded(y), rounded(out)
    expected = [np.matmul(x, np.swapaxes(y, -1, -2) if ty else y), *product_gradients(x, y, out, ty)]
    for ours, reference in zip(found, expected, strict=True):
        assert ours.dtype == np.float32
        # Much closer than bfloat16's own rounding, 4e-3.
        assert np.allclose(ours, reference, rtol=1e-5, atol=1e-4)


@needs_bfloat16
@pytest.mark.parametrize("name", ["scores", "transposed", "kept", "narrow", "column"])
def test_other_products_are_not_rounded(name: str) -> None:
    """By several matrices, by a transposed first factor, and products that are fetched; and small ones.

    Those have 32 columns, as in the drawing of samples, or one column, as in biases.
    """
    x, y = (numbers(34, 40, 36), numbers(34, 36, 48)) if name == "scores" else (numbers(64, 64), numbers(64, 48))
    y = y[:, : {"narrow": 32, "column": 1}.get(name)]
    with fresh_program() as (executor, main, _):
        first, second = (paddle.static.data(f"x{i}", value.shape) for i, value in enumerate((x, y)))
        first.stop_gradient = False
        out = paddle.matmul(first, second, transpose_x=name == "transposed")
        results = [out, *paddle.static.gradients([out.sum()], [first])]
        fetched = results if name == "kept" else [each * 1.0 for each in results]
        rewriting.round_factors(main, {value.id for value in fetched})
        names = [operation.name() for operation in main.global_block().ops]
        assert names.count("pd_op.matmul") == names.count("pd_op.matmul_grad") == 1
        found, _ = executor.run(main, feed={"x0": x, "x1": y}, fetch_list=fetched)
    assert np.allclose(found, (x.T if name == "transposed" else x) @ y, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("missing", ["processor", "library"])
def test_products_in_bfloat16_are_refused_where_there_are_none(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    monkeypatch.setattr(rewriting, "no_bfloat16", lambda: "an old one" if missing == "processor" else "")
    monkeypatch.setattr(rewriting.bfloat16_products, "is_available", lambda: False)
    with fresh_program() as (_, main, _):
        rewriting.use_kernels(main, "float32", [])
        reason = {"processor": "an old one", "library": "this Paddle has no oneDNN"}[missing]
        with pytest.raises(InputError, match=rf"no products in bfloat16 on this CPU: {reason}; use float32"):
            rewriting.use_kernels(main, "bfloat16", [])


def test_the_kernels_were_tested_with_the_installed_version_of_paddle() -> None:
    """If this fails: run this folder and the benchmark pretrain_step with the new version, then change the number."""
    assert paddle.__version__.startswith("3.3.")
