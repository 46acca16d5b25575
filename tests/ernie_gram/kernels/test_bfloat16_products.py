"""Products by matrices that oneDNN rounded and packed are those of the rounded factors."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from ernie_gram.distributed.processor import onednn_kernels
from ernie_gram.kernels import bfloat16_products
from ernie_gram.kernels.bfloat16_products import pack, packed_product
from tests.support.bfloat16 import rounded

import paddle  # noqa: F401  # isort: skip

# Without AVX-512, oneDNN has no such products.
pytestmark = pytest.mark.skipif(
    not (bfloat16_products.is_available() and onednn_kernels().operations),
    reason="no products of bfloat16 factors here",
)
COUNTS = (1, 2, 31, 32, 33, 255, 400)


def compare(seed: int) -> None:
    random = np.random.default_rng(seed)
    for k, n in ((40, 64), (64, 41), (300, 520)):
        matrix = random.standard_normal((k, n)).astype(np.float32)
        packed = pack(matrix)
        for count in (*COUNTS, *COUNTS):
            rows, out = random.standard_normal((count, k)).astype(np.float32), np.full((count, n), np.nan, np.float32)
            packed_product(rows, packed, out)
            exact = rounded(rows).astype(np.float64) @ rounded(matrix)
            np.testing.assert_allclose(out, exact, atol=1e-4)


def test_products_are_those_of_rounded_factors_for_any_number_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    compare(1)
    # Also if operations are made anew.
    monkeypatch.setattr(bfloat16_products, "_MOST", 2)
    monkeypatch.setattr(bfloat16_products, "_kept", type(bfloat16_products._kept)())
    compare(2)


def test_threads_multiply_at_the_same_time() -> None:
    with ThreadPoolExecutor(3) as threads:
        list(threads.map(compare, range(6)))


def test_numbers_that_are_not_finite_stay_so() -> None:
    rows, out = np.ones((3, 64), np.float32), np.empty((3, 48), np.float32)
    rows[0, 5], rows[1, 5] = np.nan, np.inf
    packed_product(rows, pack(np.ones((64, 48), np.float32)), out)
    assert np.isnan(out[0]).all()
    assert np.isposinf(out[1]).all()
    assert (out[2] == 64).all()
