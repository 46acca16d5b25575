"""Compiled attention against a reference in double precision, and independence of the number of threads."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest

from ernie_gram.distributed import processor
from ernie_gram.kernels import attention as compiled
from ernie_gram.kernels import blas
from reader.system.compiled import numba
from tests.ernie_gram.kernels.test_compiled import numbers, random, softmax, with_threads

pytestmark = pytest.mark.skipif(not blas.is_available(), reason="no MKL in this Paddle")
KEY, NO_KEY = np.array([3, -4], np.int32), np.empty(0, np.int32)
RATE = 0.25
# What gradients of the context and of the bias hold before those of query rows are added.
BEFORE = 0.5
# Sequences, slots, heads, and size of a head.
Shape = tuple[int, int, int, int]
SHAPES = [(1, 1, 1, 4), (3, 7, 2, 8), (2, 128, 3, 16), (3, 261, 2, 8)]


class Case:
    """Inputs for one call, and what it returns. With `queries`, so many query rows of each sequence attend."""

    def __init__(
        self, shape: Shape, has_bias: bool, drops: bool, queries: int = 0, lengths: list[int] | None = None
    ) -> None:
        sequences, slots, heads, size = shape
        self.scale, self.drops, self.queries = np.float32(size**-0.5), drops, queries
        self.lengths = np.array(lengths or random.integers(1, slots + 1, sequences), np.int64)
        self.starts = np.cumsum([0, *self.lengths])
        self.context = numbers(self.starts[-1], 3, heads, size)
        self.own = numbers(sequences * queries, 3, heads, size) if queries else self.context
        self.own[2::5, 0] *= 12  # the scores of some rows are far apart
        if queries:
            self.own[4::5, 1] = 20 * self.own[4::5, 0]  # and their own score is the largest by far
        self.bias, self.self_bias = numbers(heads * has_bias, slots, slots), numbers(heads * has_bias * bool(queries))
        drawn = [random.integers(0, n, queries) for n in self.lengths]
        self.slots = np.concatenate([np.empty(0, np.int64), *drawn])
        self.out_gradient = numbers(len(self.own), heads, size)

    def forward(self) -> list[np.ndarray]:
        """Return the output, and the logarithms by row."""
        out = np.full((len(self.own), *self.own.shape[2:]), np.nan, np.float32)
        log_sums = np.full(out.shape[:2], np.nan, np.float32)
        compiled.attention(*self._inputs(), out, log_sums)
        return [out, log_sums]

    def backward(self, out: np.ndarray, log_sums: np.ndarray) -> list[np.ndarray]:
        """Return the gradients of the context, of the rows that attend, of the bias and of query rows' own.

        Those of query rows are added to what is there.
        """
        found = [np.full_like(each, np.nan) for each in (self.context, self.own, self.bias, self.self_bias)]
        if self.queries:
            found[0].fill(BEFORE)
            found[2].fill(BEFORE)
        else:
            found[1] = found[0]
        compiled.attention_backward(*self._inputs(), out, log_sums, self.out_gradient, *found)
        return found

    def masks(self) -> np.ndarray:
        """Return the factors of the weights, [rows, A, keys]: the output if all n are equal and value j is n e_j."""
        heads, most = self.context.shape[2], max(self.lengths) + bool(self.queries)
        case = Case((len(self.lengths), 1, heads, most), False, True, self.queries, [*self.lengths])
        case.slots = self.slots
        case.context[:], case.own[:] = 0, 0
        for row, keys, place in self._rows():
            if self.queries:
                case.own[row, 2, :, len(keys)] = len(keys) + 1
            else:
                case.context[row, 2, :, place] = len(keys)
        for begin, end in pairwise(self.starts if self.queries else ()):
            case.context[range(begin, end), 2, :, range(end - begin)] = end - begin + 1
        return case.forward()[0]

    def reference(self, masks: np.ndarray | None) -> list[np.ndarray]:
        """Return the output and the gradients, row by row."""
        context, own, of_out = (each.astype(np.float64) for each in (self.context, self.own, self.out_gradient))
        out, of_context, of_own = np.zeros(of_out.shape), np.zeros(context.shape), np.zeros(own.shape)
        of_bias, of_self = np.zeros(self.bias.shape), np.zeros(self.self_bias.shape)
        if self.queries:
            of_context += BEFORE
            of_bias += BEFORE
        else:
            of_own = of_context
        for (row, keys, slot), head in product(self._rows(), range(context.shape[2])):
            key, value = context[keys, 1, head], context[keys, 2, head]
            bias = self.bias[head, slot, : len(keys)] if len(self.bias) else np.zeros(len(keys))
            if self.queries:
                key, value = np.vstack([key, own[row, 1, head]]), np.vstack([value, own[row, 2, head]])
                bias = np.append(bias, self.self_bias[head] if len(self.self_bias) else 0)
            weights = softmax(self.scale * key @ own[row, 0, head] + bias)
            mask = 1.0 if masks is None else masks[row, head, : len(weights)]
            out[row, head] = weights * mask @ value
            of_weights = value @ of_out[row, head] * mask
            of_scores = weights * (of_weights - of_weights @ weights)
            of_own[row, 0, head] += self.scale * of_scores @ key
            of_key, of_value = (
                self.scale * np.outer(of_scores, own[row, 0, head]),
                np.outer(weights * mask, of_out[row, head]),
            )
            of_context[keys, 1, head] += of_key[: len(keys)]
            of_context[keys, 2, head] += of_value[: len(keys)]
            if self.queries:
                of_own[row, 1:, head] = of_key[-1], of_value[-1]
                of_self[head : len(of_self)][:1] += of_scores[-1]
            if len(self.bias):
                of_bias[head, slot, : len(keys)] += of_scores[: len(keys)]
        return [out, of_context, of_own, of_bias, of_self]

    def _rows(self) -> list[tuple[int, range, int]]:
        """Return the rows that attend: number, keys, and slot."""
        found = []
        for sequence, (begin, end) in enumerate(pairwise(self.starts)):
            first, count = (sequence * self.queries, self.queries) if self.queries else (begin, end - begin)
            for row in range(first, first + count):
                slot = int(self.slots[row]) if self.queries else row - first
                found.append((row, range(begin, end), slot))
        return found

    def _inputs(self) -> tuple[object, ...]:
        dropout = (KEY, round(RATE * 65536), np.float32(1 / (1 - RATE))) if self.drops else (NO_KEY, 0, np.float32(1))
        given = (self.context, self.own, self.bias, self.self_bias, self.starts, self.slots)
        return *given, *dropout, self.scale, int(self.lengths.max(initial=0))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("has_bias", [False, True])
@pytest.mark.parametrize("drops", [False, True])
@pytest.mark.parametrize("queries", [0, 3, 150])
def test_output_and_gradients(shape: Shape, has_bias: bool, drops: bool, queries: int) -> None:
    case = Case(shape, has_bias, drops, queries)
    out, log_sums = case.forward()
    found = [out, *case.backward(out, log_sums)]
    for ours, expected in zip(found, case.reference(case.masks() if drops else None), strict=True):
        assert np.allclose(ours, expected, rtol=1e-4, atol=1e-5 * max(1, np.abs(expected).max(initial=0)))


@pytest.mark.parametrize("queries", [0, 200])
def test_masks_have_the_rate_and_differ(queries: int) -> None:
    found = Case((2, 300, 2, 8), False, True, queries, [300, 300]).masks()
    assert set(np.unique(np.round(found, 5))) == {0, np.float32(np.round(1 / (1 - RATE), 5))}
    assert (found == 0).mean() == pytest.approx(RATE, abs=0.005)
    assert len({row.tobytes() for row in found.reshape(-1, found.shape[-1])}) == found[..., 0].size


def test_sequences_without_tokens() -> None:
    case = Case((3, 5, 1, 4), True, False, lengths=[0, 5, 3])
    found = case.forward()
    for ours, expected in zip([found[0], *case.backward(*found)], case.reference(None), strict=True):
        assert np.allclose(ours, expected, rtol=1e-4, atol=1e-5)
    # No sequences at all.
    case = Case((0, 5, 2, 4), True, False)
    assert not case.backward(*case.forward())[2].any()


@pytest.mark.skipif(numba.config.NUMBA_NUM_THREADS < 2, reason="one core")
@pytest.mark.parametrize("sequences", [1, 5, 17])
@pytest.mark.parametrize("queries", [0, 9])
def test_results_do_not_depend_on_the_number_of_threads(sequences: int, queries: int) -> None:
    case, results = Case((sequences, 70, 4, 8), True, True, queries), []
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
