"""Products by matrices that oneDNN rounded and packed are those of the rounded factors."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from ernie_gram.kernels import bfloat16_products
from ernie_gram.kernels.bfloat16_products import add_product, pack, packed_product, round_numbers
from tests.support.bfloat16 import needs_bfloat16, rounded

import paddle  # noqa: F401  # isort: skip

pytestmark = needs_bfloat16
COUNTS = (1, 2, 31, 32, 33, 255, 400)


def compare(seed: int) -> None:
    random = np.random.default_rng(seed)
    for k, n in ((40, 64), (64, 41), (300, 520)):
        matrix = random.standard_normal((k, n)).astype(np.float32)
        packed = pack(matrix)
        for count in (*COUNTS, *COUNTS):
            rows, out = random.standard_normal((count, k)).astype(np.float32), np.full((count, n), np.nan, np.float32)
            packed_product(packed, bits(rows), out)
            exact = rounded(rows).astype(np.float64) @ rounded(matrix)
            np.testing.assert_allclose(out, exact, atol=1e-4)


def bits(x: np.ndarray) -> np.ndarray:
    """Return a matrix in bfloat16, as its bits."""
    out = np.empty(x.size, np.uint16)
    round_numbers(x.reshape(-1), out)
    return out.reshape(x.shape)


def test_numbers_are_rounded_to_nearest_even() -> None:
    random = np.random.default_rng(0)
    x = random.integers(0, 2**32, 10_000, np.uint32).view(np.float32)
    x = np.append(x[np.isfinite(x) & (np.abs(x) >= 2.0**-126)], [1 + 2**-8, 1 + 3 * 2**-8, np.inf, -np.inf]).astype(
        np.float32
    )
    assert np.array_equal(bits(x), rounded(x).view(np.uint32) >> 16)
    assert bits(np.array([np.nan], np.float32)) & 0x7FFF > 0x7F80
    round_numbers(x[:0], np.empty(0, np.uint16))


@pytest.mark.parametrize("sizes", [(33, 40, 64), (1, 300, 41), (0, 40, 64), (3, 0, 5)])
def test_factors_may_be_transposed(sizes: tuple[int, int, int]) -> None:
    m, k, n = sizes
    random = np.random.default_rng(0)
    x, y = (random.standard_normal(shape).astype(np.float32) for shape in ((m, k), (k, n)))
    exact = rounded(x).astype(np.float64) @ rounded(y)
    for first in (bits(x), bits(np.ascontiguousarray(x.T)).T):
        for second in (bits(y), bits(np.ascontiguousarray(y.T)).T):
            # Its rows are a part of those of another matrix.
            out = np.full((m, n + 3), np.nan, np.float32)[:, :n]
            add_product(first, second, out, 0.0)
            np.testing.assert_allclose(out, exact, atol=1e-4)
            add_product(first, second, out, 1.0)
            np.testing.assert_allclose(out, 2 * exact, atol=1e-4)


def test_products_are_those_of_rounded_factors_for_any_number_of_rows() -> None:
    compare(1)
    # Also if operations are made anew.
    bfloat16_products._operation.cache_clear()
    compare(2)


def test_threads_multiply_at_the_same_time() -> None:
    with ThreadPoolExecutor(3) as threads:
        list(threads.map(compare, range(6)))


def test_numbers_that_are_not_finite_stay_so() -> None:
    rows, out = np.ones((3, 64), np.float32), np.empty((3, 48), np.float32)
    rows[0, 5], rows[1, 5] = np.nan, np.inf
    packed_product(pack(np.ones((64, 48), np.float32)), bits(rows), out)
    assert np.isnan(out[0]).all()
    assert np.isposinf(out[1]).all()
    assert (out[2] == 64).all()
