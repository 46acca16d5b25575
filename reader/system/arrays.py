"""Names for the types of arrays, and offsets of consecutive ranges."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Bools = npt.NDArray[np.bool_]
Int8s = npt.NDArray[np.int8]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
UInt8s = npt.NDArray[np.uint8]
UInt64s = npt.NDArray[np.uint64]
Float32s = npt.NDArray[np.float32]
Float64s = npt.NDArray[np.float64]


def offsets_of(lengths: npt.NDArray[np.integer]) -> Int64s:
    """Return where consecutive ranges of these lengths begin, and where the last one ends; int64 [n + 1]."""
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def range_indices(starts: Int64s, lengths: npt.NDArray[np.integer]) -> Int64s:
    """Return the indices in the ranges [start, start + length), one range after another; int64."""
    offsets = offsets_of(lengths)
    return np.repeat(starts - offsets[:-1], lengths) + np.arange(offsets[-1])
