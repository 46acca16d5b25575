"""The best evaluation of a run. Nothing here imports Paddle."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal


@dataclass(frozen=True)
class Selection:
    """How evaluations are compared.

    Attributes:
        metric: name of the metric that is compared, as the evaluator returns it.
        direction: whether a larger ("max") or a smaller ("min") value is better.
    """

    metric: str
    direction: Literal["max", "min"] = "max"

    def is_better(self, value: float, best: float | None) -> bool:
        """Return whether a value is strictly better than the best one so far; every number is better than NaN."""
        if best is None or math.isnan(best):
            return best is None or not math.isnan(value)
        return value > best if self.direction == "max" else value < best


@dataclass(frozen=True)
class Progress:
    """What the evaluations of a run have shown so far; it is part of each checkpoint.

    Attributes:
        step: of the last evaluation that was compared; -1 before the first.
        best_step, best: step and value of the best evaluation; None before the first.
    """

    step: int = -1
    best_step: int | None = None
    best: float | None = None

    def after(self, step: int, value: float, selection: Selection) -> Progress:
        """Return the progress after an evaluation; the first of equal evaluations is the best."""
        if selection.is_better(value, self.best):
            return Progress(step, step, value)
        return replace(self, step=step)
