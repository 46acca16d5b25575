"""Functions that are compiled once and called for all parts."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from ernie_gram.kernels.parts import arguments_of, in_parts, matrix, vector
from reader.system.compiled import numba


@in_parts(lambda rows, *_: len(rows), matrix, numba.float32, numba.int64, vector)
def weighted_sums(part: int, given: Any) -> None:
    rows, weight, first, out = arguments_of(given)
    out[part] += weight * rows[part, first:].sum()


def test_every_part_is_computed_once() -> None:
    rows, out = np.arange(300, dtype=np.float32).reshape(100, 3), np.ones(100, np.float32)
    owners = sys.getrefcount(rows)
    weighted_sums(rows, np.float32(0.5), 1, out)
    assert np.array_equal(out, 1 + rows[:, 1:].sum(1) / 2)
    weighted_sums(rows[:0], 0.5, 1, out)
    assert out[0] == 1 + (1 + 2) / 2
    assert sys.getrefcount(rows) == owners


def test_arrays_of_another_type_are_refused() -> None:
    rows = np.zeros((2, 3), np.float32)
    for other in (rows.astype(np.float64), rows[:, :2], rows.T, rows[0]):
        with pytest.raises(TypeError):
            weighted_sums(other, 0.5, 0, np.zeros(3, np.float32))
