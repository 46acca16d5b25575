"""The best evaluation of a run, and the early end of a run that no longer improves. Nothing here imports Paddle."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Selection:
    """How evaluations are compared.

    Attributes:
        metric: name of the metric that is compared, as the evaluator returns it; more is better.
        patience: training ends after this number of evaluations in a row that are no better than the best one; None
            for no early end.
    """

    metric: str
    patience: int | None = None

    def is_better(self, value: float, best: float | None) -> bool:
        """Return whether a value is strictly better than the best one so far; every number is better than NaN."""
        if best is None or math.isnan(best):
            return best is None or not math.isnan(value)
        return value > best


@dataclass(frozen=True)
class Progress:
    """What the evaluations of a run have shown so far; it is part of each checkpoint.

    Attributes:
        step: of the last evaluation that was compared; -1 before the first.
        best_step, best: step and value of the best evaluation; None before the first.
        num_worse: evaluations since the best one.
    """

    step: int = -1
    best_step: int | None = None
    best: float | None = None
    num_worse: int = 0

    def after(self, step: int, value: float, selection: Selection) -> Progress:
        """Return the progress after an evaluation; the first of equal evaluations is the best."""
        if selection.is_better(value, self.best):
            return Progress(step, step, value, 0)
        return replace(self, step=step, num_worse=self.num_worse + 1)

    def is_over(self, selection: Selection) -> bool:
        """Return whether training ends early."""
        return selection.patience is not None and self.num_worse >= selection.patience
