"""Compiled functions of programs on a CPU; they know nothing of Paddle.

The parts into which the work is divided do not depend on the number of threads, so neither do the results. They are
also the same whether Numba has just compiled a function or read it from its cache, where the function was optimised
again as a part of its callers: the compiler is never allowed to choose the order of additions, or whether a product is
rounded before an addition.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ernie_gram.kernels.parts import arguments_of, in_parts, matrix, vector
from reader.system.compiled import numba

float32, uint32, uint64 = numba.float32, numba.uint32, numba.uint64
keys = numba.int32[::1]
serial = numba.njit(cache=True, nogil=True, error_model="numpy")
_inlined = numba.njit(inline="always")

# Constants of Philox4x32 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011).
_MULTIPLIERS = uint32(0xD2511F53), uint32(0xCD9E8D57)
_WEYL = uint32(0x9E3779B9), uint32(0xBB67AE85)
_HALF, _LOW = uint32(16), uint32(0xFFFF)
# Numbers that a part of a dropout decides over.
_DECIDED = 8 * 1024
# Numbers of a tensor, and rows of a normalised one, that make a part.
_PART, PART_ROWS = 1 << 14, 64


@_inlined
def _round(a: int, b: int, c: int, d: int, key0: int, key1: int) -> tuple[int, int, int, int, int, int]:
    """Return the counter after a round, and the key of the next one."""
    first, second = uint64(_MULTIPLIERS[0]) * uint64(a), uint64(_MULTIPLIERS[1]) * uint64(c)
    high = uint32(first >> uint64(32)), uint32(second >> uint64(32))
    next_key = uint32(key0 + _WEYL[0]), uint32(key1 + _WEYL[1])
    return high[1] ^ b ^ key0, uint32(second), high[0] ^ d ^ key1, uint32(first), next_key[0], next_key[1]


@_inlined
def philox(a: int, b: int, key0: int, key1: int) -> tuple[int, int, int, int]:
    """Return the four uint32 of Philox4x32-10 for the counter (a, b, 0, 0) and a key."""
    c, d = uint32(0), uint32(0)
    # Ten rounds. With a loop here, the loop over the counters takes 1.5 times as long.
    a, b, c, d, key0, key1 = _round(a, b, c, d, key0, key1)
    a, b, c, d, key0, key1 = _round(a, b, c, d, key0, key1)
    a, b, c, d, key0, key1 = _round(a, b, c, d, key0, key1)
    a, b, c, d, key0, key1 = _round(a, b, c, d, key0, key1)
    a, b, c, d, key0, key1 = _round(a, b, c, d, key0, key1)
    a, b, c, d, key0, key1 = _round(a, b, c, d, key0, key1)
    a, b, c, d, key0, key1 = _round(a, b, c, d, key0, key1)
    a, b, c, d, key0, key1 = _round(a, b, c, d, key0, key1)
    a, b, c, d, key0, key1 = _round(a, b, c, d, key0, key1)
    a, b, c, d, key0, key1 = _round(a, b, c, d, key0, key1)
    return a, b, c, d


@numba.njit(cache=True, nogil=True)
def decide(first: int, key0: int, key1: int, bound: int, kept: np.ndarray) -> None:
    """Set kept, uint8 [8 * calls], to 1 with probability 1 - bound / 65536; every 16 random bits decide over one.

    Philox is called with the counters first, first + 1, ...
    """
    calls, low, high = kept.size // 8, uint32(first), uint32(first >> uint64(32))
    for i in range(calls):
        a, b, c, d = philox(uint32(low + uint32(i)), high, key0, key1)
        kept[i], kept[calls + i] = (a & _LOW) >= bound, (a >> _HALF) >= bound
        kept[2 * calls + i], kept[3 * calls + i] = (b & _LOW) >= bound, (b >> _HALF) >= bound
        kept[4 * calls + i], kept[5 * calls + i] = (c & _LOW) >= bound, (c >> _HALF) >= bound
        kept[6 * calls + i], kept[7 * calls + i] = (d & _LOW) >= bound, (d >> _HALF) >= bound


@in_parts(lambda x, *_: -(-x.size // _DECIDED), vector, keys, numba.int64, numba.float32, vector)
def dropout(part: int, given: Any) -> None:
    """Set out to x * scale, with the numbers that a mask drops replaced by 0.

    Args: x, float32 [n]; key, int32 [2], which decides the mask; bound: a number is dropped with probability
        bound / 65536; scale; out, float32 [n], which may be x.
    """
    x, key, bound, scale, out = arguments_of(given)
    kept, start = np.empty(_DECIDED, np.uint8), part * _DECIDED
    decide(uint64(part) * uint64(_DECIDED // 8), uint32(key[0]), uint32(key[1]), uint32(bound), kept)
    for i in range(min(_DECIDED, x.size - start)):
        out[start + i] = x[start + i] * scale if kept[i] else float32(0)


@in_parts(lambda x, *_: -(-x.size // _PART), vector, numba.float32, vector)
def scaled(part: int, given: Any) -> None:
    """Set out to x * factor. Args: x, float32 [n]; factor; out, float32 [n], which may be x."""
    x, factor, out = arguments_of(given)
    for i in range(part * _PART, min((part + 1) * _PART, x.size)):
        out[i] = x[i] * factor


def row_parts(rows: np.ndarray, *_: object) -> int:
    """Return the number of parts of PART_ROWS rows each."""
    return -(-len(rows) // PART_ROWS)


@_inlined
def sum_of(x: np.ndarray, sums: np.ndarray) -> float:
    """Return the sum of float32 numbers [n]: eight pieces side by side, which uses vector instructions.

    Args:
        sums: memory for the sums of eight numbers, float32, at least [n / 8].
    """
    n, total = x.size // 8, float32(0)
    for j in range(n):
        first = (x[j] + x[n + j]) + (x[2 * n + j] + x[3 * n + j])
        sums[j] = first + ((x[4 * n + j] + x[5 * n + j]) + (x[6 * n + j] + x[7 * n + j]))
    for j in range(n):
        total += sums[j]
    for j in range(8 * n, x.size):
        total += x[j]
    return total


@_inlined
def product_of(x: np.ndarray, y: np.ndarray, sums: np.ndarray) -> float:
    """Return the inner product of two rows, added up as by `sum_of`."""
    n, total = x.size // 8, float32(0)
    for j in range(n):
        first = (x[j] * y[j] + x[n + j] * y[n + j]) + (x[2 * n + j] * y[2 * n + j] + x[3 * n + j] * y[3 * n + j])
        third = x[4 * n + j] * y[4 * n + j] + x[5 * n + j] * y[5 * n + j]
        sums[j] = first + (third + (x[6 * n + j] * y[6 * n + j] + x[7 * n + j] * y[7 * n + j]))
    for j in range(n):
        total += sums[j]
    for j in range(8 * n, x.size):
        total += x[j] * y[j]
    return total


@in_parts(row_parts, matrix, numba.float32[:, ::1])
def _sums_of_rows(part: int, given: Any) -> None:
    rows, sums = arguments_of(given)
    for row in range(part * PART_ROWS, min((part + 1) * PART_ROWS, rows.shape[0])):
        for j in range(rows.shape[1]):
            sums[part, j] += rows[row, j]


def sum_of_rows(rows: np.ndarray, out: np.ndarray) -> None:
    """Set out, float32 [n], to the sum of rows, float32 [rows, n]."""
    sums = np.zeros((row_parts(rows), rows.shape[1]), np.float32)
    _sums_of_rows(rows, sums)
    out[:] = sums.sum(0)


@numba.extending.intrinsic
def fma(_: Any, x: float, y: float, z: float) -> Any:
    """Return x * y + z for float32, rounded once."""
    return float32(float32, float32, float32), lambda context, builder, signature, given: builder.fma(*given)


@serial
def exp(x: float) -> float:
    """Return exp(x) for float32 x <= 0, or NaN, within 2 units in the last place; 0 where exp(x) is below 2e-38."""
    x = float32(-87.0) if x < float32(-87.0) else x
    power = np.floor(fma(x, float32(1.44269504), float32(0.5)))
    # x = power * ln 2 + r, with ln 2 in two parts; exp(r) is a polynomial (Cephes, expf).
    r = fma(power, float32(2.12194440e-4), fma(power, float32(-0.693359375), x))
    value = fma(float32(1.9875691500e-4), r, float32(1.3981999507e-3))
    value = fma(value, r, float32(8.3334519073e-3))
    value = fma(value, r, float32(4.1665795894e-2))
    value = fma(value, r, float32(1.6666665459e-1))
    value = fma(value, r, float32(5.0000001201e-1))
    value = fma(value * r, r, r) + float32(1)
    exponent = np.int32(np.int32(np.int32(power) + np.int32(127)) << np.int32(23))
    return float32(0) if x <= float32(-87.0) else value * exponent.view(np.float32)


@numba.njit(cache=True, nogil=True)
def maximum(bits: np.ndarray) -> float:
    """Return the largest of float32 numbers, given as the int32 of their bits, which use vector instructions."""
    largest = np.int32(-(2**31))
    for j in range(bits.size):
        largest = max(largest, np.int32(bits[j] ^ ((bits[j] >> np.int32(31)) & np.int32(0x7FFFFFFF))))
    return np.int32(largest ^ ((largest >> np.int32(31)) & np.int32(0x7FFFFFFF))).view(np.float32)


@_inlined
def exponentials(row: np.ndarray, largest: float, sums: np.ndarray) -> float:
    """Replace the numbers of a row by exp(number - largest), and return their sum; for `sums`, see `sum_of`."""
    for j in range(row.size):
        row[j] = exp(row[j] - largest)
    return sum_of(row, sums)
