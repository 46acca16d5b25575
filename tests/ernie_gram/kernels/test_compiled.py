"""Compiled functions against references in double precision, and independence of the number of threads."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ernie_gram.kernels import compiled
from reader.system.compiled import numba

random = np.random.default_rng(1)
NO_DROPPED, NO_MASK = np.empty((0, 7), np.float32), np.empty((0, 7), np.uint8)
SHAPES = [(1, 1), (5, 7), (200, 64), (131, 475)]


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
def call_philox(words: np.ndarray) -> tuple[int, int, int, int]:
    return compiled.philox(words[0], words[1], words[2], words[3])


def test_masks_are_philox_compared_with_the_bound() -> None:
    # The first line of kat_vectors of the library Random123.
    published = [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    assert list(call_philox(np.zeros(4, np.uint32))) == published == philox([0] * 4, [0] * 2)
    n, bound, key = 8192 * 2 + 100, 20_000, np.array([-5, 2**31 - 1], np.int32)
    out, mask = np.empty(n, np.float32), np.empty(n, np.uint8)
    compiled.dropout(np.ones(n, np.float32), key, bound, np.float32(2), out, mask)
    assert np.array_equal(out, 2 * mask.astype(np.float32))
    for index in [0, 1, 1023, *range(1024, 8192, 1024), 5000, 8191, 8192, 8192 + 3 * 1024, n - 1]:
        part, (decision, call) = index // 8192, divmod(index % 8192, 1024)
        words = philox([part * 1024 + call, 0, 0, 0], [int(word) % 2**32 for word in key])
        bits = words[decision // 2] >> 16 if decision % 2 else words[decision // 2] % 2**16
        assert mask[index] == (bits >= bound), index


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("drops", [False, True])
def test_attention_weights(shape: tuple[int, int], drops: bool) -> None:
    scores = 5 * numbers(*shape)
    scores[:, -1] -= 1e4  # padding
    weights = np.empty_like(scores)
    dropped, mask = np.empty_like(scores), np.empty(shape, np.uint8)
    key, scale = np.array([3, 4], np.int32), np.float32(1.25)
    outputs = (dropped, mask) if drops else (NO_DROPPED, NO_MASK)
    compiled.attention_weights(scores, weights, key, 13107, scale, *outputs)
    assert np.allclose(weights, softmax(scores), rtol=3e-6, atol=1e-30)
    if drops:
        assert np.array_equal(dropped, weights * scale * mask)
        expected = np.empty(mask.size, np.uint8)
        compiled.dropout(np.ones(mask.size, np.float32), key, 13107, scale, np.empty(mask.size, np.float32), expected)
        assert np.array_equal(mask.reshape(-1), expected)


def test_weights_of_numbers_that_are_not_finite() -> None:
    scores = np.array([[1, np.nan, 2], [np.inf, 1, 2], [-np.inf, 1, 1], [-200, 0, -86], [3e38, -3e38, 0]], np.float32)
    weights = np.empty_like(scores)
    compiled.attention_weights(scores, weights, np.zeros(2, np.int32), 0, np.float32(1), NO_DROPPED, NO_MASK)
    assert np.isnan(weights[0]).all()
    assert np.isnan(weights[1]).any()
    assert weights[2].tolist() == [0, 0.5, 0.5]
    assert weights[3].tolist() == pytest.approx([0, 1, np.exp(-86.0)], rel=3e-6)
    assert weights[4].tolist() == [1, 0, 0]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("drops", [False, True])
def test_gradient_of_attention_weights(shape: tuple[int, int], drops: bool) -> None:
    weights, gradient = softmax(numbers(*shape)).astype(np.float32), numbers(*shape)
    mask, scale = (random.random(shape) < 0.9).astype(np.uint8), np.float32(1.25)
    out = np.empty(shape, np.float32)
    compiled.attention_weights_backward(weights, gradient, mask if drops else NO_MASK, scale, out)
    of_weights = gradient.astype(np.float64) * (mask * scale if drops else 1)
    expected = weights * (of_weights - (of_weights * weights).sum(-1, keepdims=True))
    assert np.allclose(out, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shape", [(1, 4), (63, 48), (64, 48), (200, 33)])
def test_gradients_of_a_layer_norm(shape: tuple[int, int]) -> None:
    x, gradient, scale = 3 + numbers(*shape), numbers(*shape), numbers(shape[1])
    mean, variance, epsilon = x.mean(1), x.var(1), np.float32(1e-5)
    found = np.empty(shape, np.float32), np.empty_like(scale), np.empty_like(scale)
    compiled.layer_norm_backward(x, mean, variance, scale, gradient, epsilon, *found)

    def loss(x: np.ndarray, scale: np.ndarray, bias: np.ndarray) -> float:
        normal = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + epsilon)
        return float(((normal * scale + bias) * gradient).sum())

    inputs = [x.astype(np.float64), scale.astype(np.float64), np.zeros(shape[1])]
    for which, ours in enumerate(found):
        for index in [
            (0,) * ours.ndim,
            tuple(size - 1 for size in ours.shape),
            tuple(size // 2 for size in ours.shape),
        ]:
            step = np.zeros(ours.shape)
            step[index] = 1e-5
            two = [
                loss(*(each + sign * step if i == which else each for i, each in enumerate(inputs))) for sign in (1, -1)
            ]
            assert ours[index] == pytest.approx((two[0] - two[1]) / 2e-5, rel=2e-4, abs=2e-4)


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


@pytest.mark.skipif(numba.config.NUMBA_NUM_THREADS < 2, reason="one core")
def test_results_do_not_depend_on_the_number_of_threads() -> None:
    rows, n = 300, 96
    x, gradient, scale = numbers(rows, n), numbers(rows, n), numbers(n)
    mean, variance, key = x.mean(1), x.var(1), np.array([1, 2], np.int32)
    results = []
    for threads in (1, 2):
        found = [np.empty((rows, n), np.float32) for _ in range(4)]
        small, mask = [np.empty(n, np.float32) for _ in range(2)], np.empty((rows, n), np.uint8)

        def compute(found: list[np.ndarray] = found, small: list[np.ndarray] = small, mask: np.ndarray = mask) -> None:
            compiled.layer_norm_backward(x, mean, variance, scale, gradient, np.float32(1e-5), found[0], *small)
            compiled.attention_weights(x, found[1], key, 6554, np.float32(1.1), found[2], mask)
            compiled.attention_weights_backward(found[1], gradient, mask, np.float32(1.1), found[3])

        with_threads(threads, compute)
        results.append([*found, *small, mask])
    assert all(np.array_equal(one, two) for one, two in zip(*results, strict=True))
