"""Biases in programs with compiled operations: what adds them, and what must stay as it was."""

from __future__ import annotations

import paddle
import pytest
from paddle.nn import functional as F

from ernie_gram.graph import MarkedLayer
from ernie_gram.model.layers import linear
from tests.support.rewritten_programs import run_both


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
    assert ("pd_op.gelu" in names) == (reader != "no scale")
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


def test_layers_that_may_be_recomputed_keep_their_operations() -> None:
    def build(x: paddle.Tensor, y: paddle.Tensor) -> list[paddle.Tensor]:
        with MarkedLayer():
            return [F.gelu(linear(x, y[:1] * y[1:2].t(), y[2])) * 1.0]

    assert "pd_op.gelu" in run_both(build)
