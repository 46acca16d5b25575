"""Compiled additions of biases on a CPU, alone or in the operation that reads the sum.

As in compiled.py, the results depend neither on the number of threads nor on Numba's cache.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ernie_gram.kernels.compiled import PART_ROWS, exp, fma, product_of, row_parts, serial, sum_of
from ernie_gram.kernels.parts import arguments_of, in_parts, matrix, vector
from reader.system.compiled import numba

float32 = numba.float32
# Unlike `in_parts`, it takes arrays to be distinct. Therefore, loops that read and write the same memory use vector
# instructions: here, the result may take that of the first array.
parallel = numba.njit(cache=True, nogil=True, parallel=True, error_model="numpy")


@parallel
def add_bias(rows: np.ndarray, bias: np.ndarray, out: np.ndarray) -> None:
    """Set out to rows + bias; float32 [rows, n] and [n]."""
    for row in numba.prange(rows.shape[0]):
        for j in range(bias.size):
            out[row, j] = rows[row, j] + bias[j]


@serial
def _error_function(x: float) -> float:
    """Return erf(x / sqrt 2) for float32 x, within 4e-7."""
    z = x * float32(0.70710678)
    # erf(z) is 1 in float32 beyond 4; before it is a quotient of polynomials, those of Eigen.
    z = min(max(z, float32(-4)), float32(4))
    square = z * z
    above = fma(square, float32(-2.72614225801306e-10), float32(2.77068142495902e-08))
    above = fma(above, square, float32(-2.10102402082508e-06))
    above = fma(above, square, float32(-5.69250639462346e-05))
    above = fma(above, square, float32(-7.34990630326855e-04))
    above = fma(above, square, float32(-2.95459980854025e-03))
    above = fma(above, square, float32(-1.60960333262415e-02))
    below = fma(square, float32(-1.45660718464996e-05), float32(-2.13374055278905e-04))
    below = fma(below, square, float32(-1.68282697438203e-03))
    below = fma(below, square, float32(-7.37332916720468e-03))
    below = fma(below, square, float32(-1.42647390514189e-02))
    return z * above / below


@serial
def gelu(x: float) -> float:
    """Return x (1 + erf(x / sqrt 2)) / 2 for float32 x, within 2e-7 * |x|."""
    half = float32(0.5) * x
    return fma(half, _error_function(x), half)


@parallel
def biased_gelu(rows: np.ndarray, bias: np.ndarray, out: np.ndarray) -> None:
    """Set out to gelu(rows + bias); float32 [rows, n] and [n]."""
    for row in numba.prange(rows.shape[0]):
        for j in range(bias.size):
            out[row, j] = gelu(rows[row, j] + bias[j])


@parallel
def biased_gelu_backward(rows: np.ndarray, bias: np.ndarray, gradient: np.ndarray, out: np.ndarray) -> None:
    """Set out to the gradient of rows + bias, given that of gelu(rows + bias); float32 [rows, n] and [n]."""
    for row in numba.prange(rows.shape[0]):
        for j in range(bias.size):
            x = rows[row, j] + bias[j]
            density = exp(float32(-0.5) * x * x) * float32(0.3989422804)
            out[row, j] = gradient[row, j] * fma(x, density, fma(float32(0.5), _error_function(x), float32(0.5)))


@in_parts(row_parts, matrix, vector, matrix, vector, vector, numba.float32, matrix)
def normalised_sum(part: int, given: Any) -> None:
    """Set out to the layer norm of residual + rows + bias, with scale, shift and epsilon.

    Args: rows, float32 [rows, n]; bias [n]; residual [rows, n]; scale, shift [n]; epsilon; out [rows, n].
    """
    rows, bias, residual, scale, shift, epsilon, out = arguments_of(given)
    count, n = rows.shape
    total, memory = np.empty(n, np.float32), np.empty(n, np.float32)
    for row in range(part * PART_ROWS, min((part + 1) * PART_ROWS, count)):
        for j in range(n):
            total[j] = residual[row, j] + (rows[row, j] + bias[j])
        mean = sum_of(total, memory) / float32(n)
        for j in range(n):
            total[j] -= mean
        variance = product_of(total, total, memory) / float32(n)
        factor = float32(1) / np.sqrt(variance + epsilon)
        for j in range(n):
            out[row, j] = total[j] * factor * scale[j] + shift[j]
