"""Compiled functions of rows on a CPU: sums with biases, gelu, and layer norm with the dropout before it.

As in compiled.py, the results depend neither on the number of threads nor on Numba's cache.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ernie_gram.kernels.compiled import PART_ROWS, decide, exp, fma, keys, product_of, row_parts, serial, sum_of
from ernie_gram.kernels.parts import arguments_of, in_parts, matrix, vector
from reader.system.compiled import numba

float32, uint32, uint64 = numba.float32, numba.uint32, numba.uint64
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


_mask = (keys, numba.int64, float32)


@serial
def _decide(part: int, key: np.ndarray, bound: int, kept: np.ndarray) -> None:
    """Draw the mask of a part's numbers, whose number is a multiple of 8."""
    first = uint64(part) * uint64(kept.size // 8)
    decide(first, uint32(key[0]), uint32(key[1]), uint32(bound), kept)


@serial
def _normalise(total: np.ndarray, epsilon: float, memory: np.ndarray) -> float:
    """Replace a row by (row - mean) / s, with s = sqrt(variance + epsilon); return 1 / s."""
    n = float32(total.size)
    mean = sum_of(total, memory) / n
    for j in range(total.size):
        total[j] -= mean
    factor = float32(1) / np.sqrt(product_of(total, total, memory) / n + epsilon)
    for j in range(total.size):
        total[j] *= factor
    return factor


@in_parts(row_parts, matrix, vector, matrix, vector, vector, float32, *_mask, matrix, matrix)
def normalised_sum(part: int, given: Any) -> None:
    """Set out to the layer norm of residual + dropout(rows + bias), and sums to what is normalised.

    Args: rows, float32 [rows, n]; bias [n]; residual [rows, n]; scale and shift [n]; epsilon; key, int32 [2], which
        decides the mask of the dropout, or [0] for none; bound and kept_scale, as those of attention; sums, out
        [rows, n]. Arrays of rows may be the same.
    """
    rows, bias, residual, scale, shift, epsilon, key, bound, kept_scale, sums, out = arguments_of(given)
    count, n = rows.shape
    total, memory, kept = np.empty(n, np.float32), np.empty(n, np.float32), np.empty(PART_ROWS * n, np.uint8)
    if key.size:
        _decide(part, key, bound, kept)
    for row in range(part * PART_ROWS, min((part + 1) * PART_ROWS, count)):
        if key.size:
            mask = kept[(row - part * PART_ROWS) * n :]
            for j in range(n):
                total[j] = residual[row, j] + ((rows[row, j] + bias[j]) * kept_scale if mask[j] else float32(0))
        else:
            for j in range(n):
                total[j] = residual[row, j] + (rows[row, j] + bias[j])
        for j in range(n):
            sums[row, j] = total[j]
        _normalise(total, epsilon, memory)
        for j in range(n):
            out[row, j] = total[j] * scale[j] + shift[j]


@in_parts(row_parts, matrix, vector, matrix, float32, *_mask, matrix, matrix, numba.float32[:, :, ::1])
def _normalised_sum_backward(part: int, given: Any) -> None:
    sums, scale, gradient, epsilon, key, bound, kept_scale, of_sums, of_rows, found = arguments_of(given)
    count, n = sums.shape
    of_scale, of_shift, of_bias = found[part, 0], found[part, 1], found[part, 2]
    normal, scaled, memory = np.empty(n, np.float32), np.empty(n, np.float32), np.empty(n, np.float32)
    kept = np.ones(PART_ROWS * n, np.uint8)
    if key.size:
        _decide(part, key, bound, kept)
    for row in range(part * PART_ROWS, min((part + 1) * PART_ROWS, count)):
        mask = kept[(row - part * PART_ROWS) * n :]
        for j in range(n):
            normal[j] = sums[row, j]
        factor = _normalise(normal, epsilon, memory)
        for j in range(n):
            scaled[j] = gradient[row, j] * scale[j]
            of_scale[j] += gradient[row, j] * normal[j]
            of_shift[j] += gradient[row, j]
        first = sum_of(scaled, memory) / float32(n)
        second = product_of(scaled, normal, memory) / float32(n)
        for j in range(n):
            scaled[j] = (scaled[j] - first - normal[j] * second) * factor
            of_sums[row, j] = scaled[j]
            scaled[j] = scaled[j] * kept_scale if mask[j] else float32(0)
            of_rows[row, j] = scaled[j]
            of_bias[j] += scaled[j]


def normalised_sum_backward(sums: np.ndarray, *others: Any) -> None:
    """Set the gradients of what `normalised_sum` reads.

    Args: sums; scale; the gradient of its result; epsilon; key, bound and kept_scale; then those that are set: of the
        sums, which is that of the residual, and of the rows [rows, n]; of the scale, the shift and the bias [n].

    With s = sqrt(variance + epsilon), h = (sums - mean) / s and g = gradient, that of the sums is
    (g * scale - mean(g * scale) - h * mean(g * scale * h)) / s; those of scale and shift are the sums over rows of
    g * h and of g.
    """
    *given, of_scale, of_shift, of_bias = others
    found = np.zeros((row_parts(sums), 3, sums.shape[1]), np.float32)
    _normalised_sum_backward(sums, *given, found)
    of_scale[:], of_shift[:], of_bias[:] = found.sum(0)
