"""The frequencies of classes in the training corpus: a baseline of evaluation, and start values. No Paddle."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def log_frequencies(counts: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Return log p of every class by its frequency in the training corpus, with add-one smoothing; float64 [C]."""
    return np.log((counts + 1) / (counts.sum() + len(counts)))
