"""Compiled functions against references in double precision."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ernie_gram.kernels import compiled
from reader.system.compiled import numba

random = np.random.default_rng(1)


def numbers(*shape: int) -> np.ndarray:
    return random.standard_normal(shape, dtype=np.float32)


def softmax(x: np.ndarray) -> np.ndarray:
    powers = np.exp(x.astype(np.float64) - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def philox(counter: list[int], key: list[int]) -> list[int]:
    """Return four words of Philox4x32-10, from its definition."""
    for turn in range(10):
        first, second = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        counter = [
            (second >> 32) ^ counter[1] ^ (key[0] + turn * 0x9E3779B9) % 2**32,
            second % 2**32,
            (first >> 32) ^ counter[3] ^ (key[1] + turn * 0xBB67AE85) % 2**32,
            first % 2**32,
        ]
    return counter


@numba.njit
def call_exponentials(row: np.ndarray, sums: np.ndarray) -> float:
    return compiled.exponentials(row, compiled.maximum(row.view(np.int32)), sums)


@numba.njit
def call_philox(words: np.ndarray) -> tuple[int, int, int, int]:
    return compiled.philox(words[0], words[1], words[2], words[3])


def test_masks_are_philox_compared_with_the_bound() -> None:
    # The first line of kat_vectors of the library Random123.
    published = [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    assert list(call_philox(np.zeros(4, np.uint32))) == published == philox([0] * 4, [0] * 2)
    n, bound, key = 8192 * 2 + 100, 20_000, np.array([-5, 2**31 - 1], np.int32)
    out = np.ones(n, np.float32)
    compiled.dropout(out, key, bound, np.float32(2), out)
    mask = out == 2
    assert np.array_equal(out, 2 * mask)
    for index in [0, 1, 1023, *range(1024, 8192, 1024), 5000, 8191, 8192, 8192 + 3 * 1024, n - 1]:
        part, (decision, call) = index // 8192, divmod(index % 8192, 1024)
        words = philox([part * 1024 + call, 0, 0, 0], [int(word) % 2**32 for word in key])
        bits = words[decision // 2] >> 16 if decision % 2 else words[decision // 2] % 2**16
        assert mask[index] == (bits >= bound), index


def test_exponentials_of_numbers_that_are_far_apart_or_not_finite() -> None:
    rows = np.array([[1, np.nan, 2], [np.inf, 1, 2], [-np.inf, 1, 1], [-200, 0, -86], [3e38, -3e38, 0]], np.float32)
    sums = [call_exponentials(row, np.empty(1, np.float32)) for row in rows]
    assert np.isnan(sums[:2]).all()
    assert rows[2].tolist() == [0, 1, 1]
    assert rows[3].tolist() == pytest.approx([0, 1, np.exp(-86.0)], rel=3e-6)
    assert rows[4].tolist() == [1, 0, 0]


@pytest.mark.parametrize("shape", [(0, 3), (1, 4), (63, 48), (64, 48), (200, 33)])
def test_sum_of_rows(shape: tuple[int, int]) -> None:
    rows, found = numbers(*shape), np.full(shape[1], np.nan, np.float32)
    compiled.sum_of_rows(rows, found)
    assert np.allclose(found, rows.astype(np.float64).sum(0), rtol=1e-5, atol=1e-5)


def with_threads(count: int, compute: Callable[[], None]) -> None:
    before = numba.get_num_threads()
    numba.set_num_threads(count)
    try:
        compute()
    finally:
        numba.set_num_threads(before)
