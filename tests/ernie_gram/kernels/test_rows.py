"""Compiled functions of rows against references in double precision, and independence of the number of threads."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

from ernie_gram.kernels import rows as compiled
from reader.system.compiled import numba
from tests.ernie_gram.kernels.test_compiled import numbers, with_threads


def test_gelu_of_biased_rows() -> None:
    x = np.concatenate([np.linspace(-20, 20, 4001), [0, -0.0, 1e-30, -1e4, 1e30, np.nan, np.inf]]).astype(np.float32)
    rows, bias = np.stack([x, x[::-1]]), numbers(x.size)
    for added in (np.zeros_like(bias), bias):
        out = np.empty_like(rows)
        compiled.biased_gelu(rows, added, out)
        total = (rows + added).astype(np.float64)
        expected = 0.5 * total * (1 + special.erf(total / np.sqrt(2)))
        finite = np.isfinite(expected)
        assert np.all(np.abs(out[finite] - expected[finite]) <= 2e-7 * np.maximum(1e-30, np.abs(total[finite])))
        assert np.array_equal(out[~finite], expected[~finite], equal_nan=True)
        of_out = np.ones_like(rows) * 3
        compiled.biased_gelu_backward(rows, added, of_out, out)
        with np.errstate(invalid="ignore"):
            slope = special.ndtr(total) + total * np.exp(-total * total / 2) / np.sqrt(2 * np.pi)
        finite = np.isfinite(slope)
        assert np.allclose(out[finite], 3 * slope[finite], atol=2e-6)
        assert np.isnan(out[~finite]).all()


EPSILON, SCALE = np.float32(1e-5), np.float32(2)
KEY, BOUND, NO_KEY = np.array([3, -4], np.int32), 32_768, np.empty(0, np.int32)


def inputs(shape: tuple[int, int]) -> dict[str, np.ndarray]:
    vectors = {name: numbers(shape[1]) for name in ("bias", "scale", "shift")}
    return {"rows": numbers(*shape), "residual": 3 + numbers(*shape), **vectors}


def forward(given: dict[str, np.ndarray], mask: np.ndarray) -> np.ndarray:
    """Return the layer norm of a sum, in double precision."""
    total = given["residual"].astype(np.float64) + mask * (given["rows"] + given["bias"])
    normal = (total - total.mean(1, keepdims=True)) / np.sqrt(total.var(1, keepdims=True) + EPSILON)
    return normal * given["scale"] + given["shift"]


def computed(given: dict[str, np.ndarray], key: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return what is normalised, and the result."""
    sums, out = np.empty_like(given["rows"]), np.empty_like(given["rows"])
    dropout = key, BOUND if key.size else 0, SCALE if key.size else np.float32(1)
    read = (given[name] for name in ("rows", "bias", "residual", "scale", "shift"))
    compiled.normalised_sum(*read, EPSILON, *dropout, sums, out)
    return sums, out


def gradients(given: dict[str, np.ndarray], key: np.ndarray, gradient: np.ndarray) -> dict[str, np.ndarray]:
    sums, _ = computed(given, key)
    dropout = key, BOUND if key.size else 0, SCALE if key.size else np.float32(1)
    found = {name: np.empty_like(given[name]) for name in ("residual", "rows", "scale", "shift", "bias")}
    compiled.normalised_sum_backward(sums, given["scale"], gradient, EPSILON, *dropout, *found.values())
    return found


def mask_of(shape: tuple[int, int]) -> np.ndarray:
    """Return the factors of a dropout: sums of rows of ones, without a residual."""
    given = {name: np.zeros_like(values) for name, values in inputs(shape).items()} | {
        "rows": np.ones(shape, np.float32)
    }
    return computed(given, KEY)[0].astype(np.float64)


@pytest.mark.parametrize("shape", [(1, 4), (63, 48), (64, 48), (200, 33)])
@pytest.mark.parametrize("key", [NO_KEY, KEY], ids=["", "dropout"])
def test_layer_norm_of_a_sum_and_its_gradients(shape: tuple[int, int], key: np.ndarray) -> None:
    given, gradient = inputs(shape), numbers(*shape)
    mask = mask_of(shape) if key.size else np.ones(shape)
    expected = forward(given, mask)
    assert np.allclose(computed(given, key)[1], expected, rtol=1e-4, atol=1e-5)
    # Results may take the memory of the rows.
    again = {name: values.copy() for name, values in given.items()}
    read = (again[name] for name in ("rows", "bias", "residual", "scale", "shift"))
    compiled.normalised_sum(*read, EPSILON, NO_KEY, 0, 1.0, again["rows"], again["rows"])
    assert np.allclose(again["rows"], forward(given, np.ones(shape)), rtol=1e-4, atol=1e-5)
    for name, ours in gradients(given, key, gradient).items():
        for index in {tuple(size * i // 2 - (i == 2) for size in ours.shape) for i in range(3)}:
            step = np.zeros(ours.shape)
            step[index] = 1e-5
            two = [(forward({**given, name: given[name] + s * step}, mask) * gradient).sum() for s in (1, -1)]
            assert ours[index] == pytest.approx((two[0] - two[1]) / 2e-5, rel=5e-4, abs=5e-4), name


def test_masks_of_rows_have_the_rate_and_differ() -> None:
    mask = mask_of((300, 96))
    assert set(np.unique(mask)) == {0, 2}
    assert (mask == 0).mean() == pytest.approx(0.5, abs=0.02)
    assert len({row.tobytes() for row in mask}) == 300


@pytest.mark.skipif(numba.config.NUMBA_NUM_THREADS < 2, reason="one core")
def test_results_do_not_depend_on_the_number_of_threads() -> None:
    given, gradient, results = inputs((300, 96)), numbers(300, 96), []
    for threads in (1, 2):
        found: list[np.ndarray] = []

        def compute(found: list[np.ndarray] = found) -> None:
            found += [*computed(given, KEY), *gradients(given, KEY, gradient).values()]

        with_threads(threads, compute)
        results.append(found)
    assert all(np.array_equal(one, two) for one, two in zip(*results, strict=True))
