"""Rounding to bfloat16, and a mark for tests that need a CPU whose products of bfloat16 factors are fast."""

from __future__ import annotations

import numpy as np
import pytest

from ernie_gram.distributed.processor import no_bfloat16

needs_bfloat16 = pytest.mark.skipif(bool(no_bfloat16()), reason=no_bfloat16())


def rounded(x: np.ndarray) -> np.ndarray:
    """Return float32 numbers rounded to bfloat16, to nearest even, from the definition."""
    bits = np.ascontiguousarray(x).view(np.uint32).astype(np.uint64)
    upper = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16 << 16
    return upper.astype(np.uint32).view(np.float32)
