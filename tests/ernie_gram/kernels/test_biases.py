"""Compiled additions of biases against references in double precision."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

from ernie_gram.kernels import biases
from tests.ernie_gram.kernels.test_compiled import numbers


def test_gelu_of_biased_rows() -> None:
    x = np.concatenate([np.linspace(-20, 20, 4001), [0, -0.0, 1e-30, -1e4, 1e30, np.nan, np.inf]]).astype(np.float32)
    rows, bias = np.stack([x, x[::-1]]), numbers(x.size)
    for added in (np.zeros_like(bias), bias):
        out = np.empty_like(rows)
        biases.biased_gelu(rows, added, out)
        total = (rows + added).astype(np.float64)
        expected = 0.5 * total * (1 + special.erf(total / np.sqrt(2)))
        finite = np.isfinite(expected)
        assert np.all(np.abs(out[finite] - expected[finite]) <= 2e-7 * np.maximum(1e-30, np.abs(total[finite])))
        assert np.array_equal(out[~finite], expected[~finite], equal_nan=True)
        of_out = np.ones_like(rows) * 3
        biases.biased_gelu_backward(rows, added, of_out, out)
        with np.errstate(invalid="ignore"):
            slope = special.ndtr(total) + total * np.exp(-total * total / 2) / np.sqrt(2 * np.pi)
        finite = np.isfinite(slope)
        assert np.allclose(out[finite], 3 * slope[finite], atol=2e-6)
        assert np.isnan(out[~finite]).all()


@pytest.mark.parametrize("shape", [(1, 4), (64, 48), (200, 33)])
def test_layer_norm_of_a_sum(shape: tuple[int, int]) -> None:
    residual, rows, bias, scale, shift = (
        *(3 + numbers(*shape), numbers(*shape)),
        *(numbers(shape[1]) for _ in range(3)),
    )
    total = residual.astype(np.float64) + rows + bias
    normal = (total - total.mean(1, keepdims=True)) / np.sqrt(total.var(1, keepdims=True) + 1e-5)
    for out in (np.empty_like(rows), rows):
        biases.normalised_sum(rows, bias, residual, scale, shift, np.float32(1e-5), out)
        assert np.allclose(out, normal * scale + shift, rtol=1e-5, atol=1e-5)
