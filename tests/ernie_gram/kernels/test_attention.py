"""Compiled attention against a reference in double precision, and independence of the number of threads."""

from __future__ import annotations

import numpy as np
import pytest

from ernie_gram.distributed import processor
from ernie_gram.kernels import attention as compiled
from ernie_gram.kernels import blas
from reader.system.compiled import numba
from tests.ernie_gram.kernels.test_compiled import softmax, with_threads

pytestmark = pytest.mark.skipif(not blas.is_available(), reason="no MKL in this Paddle")
random = np.random.default_rng(1)
KEY, NO_KEY = np.array([3, -4], np.int32), np.empty(0, np.int32)
RATE = 0.25


class Case:
    """Inputs for one call, and what it returns; with padding, [B, L, ...], also if the compiled function gets none."""

    def __init__(self, shape: tuple[int, int, int, int], has_bias: bool, drops: bool, packs: bool = False) -> None:
        sequences, slots, heads, size = shape
        self.scale = np.float32(size**-0.5)
        self.projected = random.standard_normal((sequences, slots, 3, heads, size), dtype=np.float32)
        self.bias = random.standard_normal((heads if has_bias else 0, slots, slots), dtype=np.float32)
        self.lengths = random.integers(1, slots + 1, sequences)
        self.drops, self.packs = drops, packs
        self.out_gradient = random.standard_normal((sequences, slots, heads, size), dtype=np.float32)

    @property
    def is_real(self) -> np.ndarray:
        """Which slots are not padding, [B, L]."""
        return np.arange(self.projected.shape[1]) < self.lengths[:, None]

    def forward(self) -> list[np.ndarray]:
        """Return the output, and the logarithms by row."""
        rows, heads = len(self._given(self.projected)), self.projected.shape[3]
        out = np.full((rows, *self.out_gradient.shape[2:]), np.nan, np.float32)
        log_sums = np.full((rows, heads), np.nan, np.float32)
        compiled.attention(*self._inputs(), out, log_sums)
        return [self._padded(out), log_sums]

    def backward(self, out: np.ndarray, log_sums: np.ndarray) -> list[np.ndarray]:
        """Return the gradients of what was projected and of the bias."""
        given = self._given(out), log_sums, self._given(self.out_gradient)
        found = np.full_like(self._given(self.projected), np.nan), np.full_like(self.bias, np.nan)
        compiled.attention_backward(*self._inputs(), *given, *found)
        return [self._padded(found[0]), found[1]]

    def reference(self, mask: np.ndarray) -> list[np.ndarray]:
        """Return the output and both gradients, given the factors of the weights, [B, A, L, L] or 1."""
        query, key, value = self.projected.astype(np.float64).transpose(2, 0, 3, 1, 4)
        scores = query @ key.swapaxes(-1, -2) * self.scale
        scores = scores + self.bias if len(self.bias) else scores
        is_real = self.is_real[:, None, None]
        weights = softmax(np.where(is_real, scores, -1e30)) * is_real.swapaxes(-1, -2)
        out, of_out = (weights * mask) @ value, self.out_gradient.astype(np.float64).transpose(0, 2, 1, 3)
        of_weights = of_out @ value.swapaxes(-1, -2) * mask
        of_scores = weights * (of_weights - (of_weights * weights).sum(-1, keepdims=True))
        of_query, of_key = of_scores @ key * self.scale, of_scores.swapaxes(-1, -2) @ query * self.scale
        of_value = (weights * mask).swapaxes(-1, -2) @ of_out
        of_all = np.stack([of_query, of_key, of_value]).transpose(1, 3, 0, 2, 4)
        return [out.transpose(0, 2, 1, 3), of_all, of_scores.sum(0) if len(self.bias) else self.bias]

    def _inputs(self) -> tuple[object, ...]:
        dropout = (KEY, round(RATE * 65536), np.float32(1 / (1 - RATE))) if self.drops else (NO_KEY, 0, np.float32(1))
        sequences, slots = self.projected.shape[:2]
        starts = np.cumsum([0, *self.lengths]) if self.packs else np.arange(sequences + 1) * slots
        most = int(np.diff(starts).max(initial=0))
        return self._given(self.projected), self.bias, starts, self.lengths, *dropout, self.scale, most

    def _given(self, slots: np.ndarray) -> np.ndarray:
        """Return the rows that the compiled function gets."""
        return slots[self.is_real] if self.packs else slots.reshape(-1, *slots.shape[2:])

    def _padded(self, rows: np.ndarray) -> np.ndarray:
        """Return the slots of such rows, [B, L, ...]."""
        slots = np.zeros((*self.projected.shape[:2], *rows.shape[1:]), np.float32)
        slots[self.is_real if self.packs else ...] = rows if self.packs else rows.reshape(slots.shape)
        return slots


def masks(shape: tuple[int, int, int, int], lengths: np.ndarray, packs: bool = False) -> np.ndarray:
    """Return the factors of the weights, [B, A, L, L]: the output if n weights are equal and value j is n e_j."""
    sequences, slots, heads, _ = shape
    case = Case((sequences, slots, heads, slots), False, True, packs)
    case.lengths = lengths
    case.projected[:] = 0
    case.projected[:, range(slots), 2, :, range(slots)] = lengths[:, None]
    return case.forward()[0].transpose(0, 2, 1, 3)


SHAPES = [(1, 1, 1, 4), (3, 7, 2, 8), (2, 128, 3, 16), (3, 261, 2, 8)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("has_bias", [False, True])
@pytest.mark.parametrize("drops", [False, True])
@pytest.mark.parametrize("packs", [False, True])
def test_output_and_gradients(shape: tuple[int, int, int, int], has_bias: bool, drops: bool, packs: bool) -> None:
    case = Case(shape, has_bias, drops, packs)
    out, log_sums = case.forward()
    found = [out, *case.backward(out, log_sums)]
    for ours, expected in zip(
        found, case.reference(masks(shape, case.lengths, packs) if drops else np.ones(1)), strict=True
    ):
        assert np.allclose(ours, expected, rtol=1e-4, atol=1e-5)


def test_masks_have_the_rate_and_differ() -> None:
    found = masks((2, 300, 2, 300), np.full(2, 300))
    assert set(np.unique(np.round(found, 5))) == {0, np.float32(np.round(1 / (1 - RATE), 5))}
    assert (found == 0).mean() == pytest.approx(RATE, abs=0.005)
    flat = found.reshape(-1, 100, 300)
    assert len({part.tobytes() for part in flat}) == len(flat)


def test_sequences_without_tokens_and_lengths_beyond_the_slots() -> None:
    case = Case((3, 5, 1, 4), True, False)
    case.lengths = np.array([0, 9, 3])
    out, log_sums = case.forward()
    found = [out, *case.backward(out, log_sums)]
    for ours, expected in zip(found, case.reference(np.ones(1)), strict=True):
        assert np.allclose(ours, expected, rtol=1e-4, atol=1e-5)
    # No sequences at all.
    case = Case((0, 5, 2, 4), True, False)
    out, log_sums = case.forward()
    of_projected, of_bias = case.backward(out, log_sums)
    assert of_projected.shape == case.projected.shape
    assert not of_bias.any()


@pytest.mark.skipif(numba.config.NUMBA_NUM_THREADS < 2, reason="one core")
@pytest.mark.parametrize("sequences", [1, 5, 17])
def test_results_do_not_depend_on_the_number_of_threads(sequences: int) -> None:
    case, results = Case((sequences, 70, 4, 8), True, True), []
    for threads in (1, 2):
        found: list[np.ndarray] = []

        def compute(found: list[np.ndarray] = found) -> None:
            found += case.forward()
            found += case.backward(*found)

        with_threads(threads, compute)
        results.append(found)
    assert all(np.array_equal(one, two, equal_nan=True) for one, two in zip(*results, strict=True))


@pytest.mark.parametrize("library", ["libnone.so", "libphi_core.so"])  # the second one lacks these functions
def test_a_paddle_without_the_library(monkeypatch: pytest.MonkeyPatch, library: str) -> None:
    monkeypatch.setattr(processor, "_MKL", library)
    assert not blas.is_available.__wrapped__()
