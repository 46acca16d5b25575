"""The softmax of scores."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

Floats = TypeVar("Floats", bound=np.ndarray[Any, Any])


def softmax(scores: Floats) -> Floats:
    """Return the softmax of floating-point numbers [..., width] over the last axis, which may not be empty."""
    exponentials = np.exp(scores - scores.max(-1, keepdims=True))
    probabilities: Floats = exponentials / exponentials.sum(-1, keepdims=True)
    return probabilities
