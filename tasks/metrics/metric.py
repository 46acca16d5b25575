"""The record of a metric, and the arithmetic that several metrics share.

A metric is a function of the gold values and the predictions that a kind of task makes. There is at least one value,
sequences have the same rows on both sides, and all values have been checked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

Scores = dict[str, float]

# Types of `gold` and of `predictions`, in this order, for each kind of input:
#   labels:        Sequence[label], Sequence[label]; row i of both is the same example
#   label_sets:    Sequence[tuple[label, ...]], the same; each label once
#   labels_by_id:  Mapping[id, label], Mapping[id, label]
#   scores:        Sequence[float], Sequence[float]
#   texts_by_id:   Mapping[id, Sequence[str]] (the accepted answers), Mapping[id, str]
#   tag_sequences: Sequence[Sequence[str]], Sequence[Sequence[str]]; one inner sequence per sentence
#   spans:         Sequence[SpanLabels], Sequence[SpanLabels]; see entities.py
ValueTypes = Literal["labels", "label_sets", "labels_by_id", "scores", "texts_by_id", "tag_sequences", "spans"]


@dataclass(frozen=True)
class Metric:
    """A way to score predictions.

    Attributes:
        function: (gold, predictions, **options) -> scores by name. Raises InputError for what it cannot score.
        kind: the types of `gold` and `predictions`.
        description: what is computed, and the tasks that use it.
        main: name of the score that chooses checkpoints.
        unit: unit of the scores, as the official scorer prints them. Counts have no unit.
        direction: whether a larger ("max") or a smaller ("min") main score is better.
        options: names of the keyword arguments that `function` accepts.
        labels: the labels for which it is defined; empty if it accepts any labels.
        reported: names of the scores that papers report; empty if that is the main score.
    """

    function: Callable[..., Scores]
    kind: ValueTypes
    description: str
    main: str
    unit: Literal["fraction", "percent", "none"] = "fraction"
    direction: Literal["max", "min"] = "max"
    options: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    reported: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name in METRICS (catalog.py)."""
        return self.function.__name__

    @property
    def reported_scores(self) -> tuple[str, ...]:
        """The names of the scores that papers report."""
        return self.reported or (self.main,)

    def __call__(self, gold: Any, predictions: Any, **options: Any) -> Scores:
        """Return the scores of some predictions."""
        return self.function(gold, predictions, **options)


def percent(values: Iterable[float], total: int) -> float:
    """Return 100 * sum / total, with the operations in the order of the official scripts: equal to the last bit."""
    return 100.0 * sum(values) / total


def precision_recall_f1(correct: int, predicted: int, gold: int) -> tuple[float, float, float]:
    """Return precision, recall and F1 as fractions; a score whose denominator is zero is 0, as in conlleval.

    The order of operations is that of the official scripts for questions: equal to the last bit.
    """
    precision = correct / predicted if predicted else 0.0
    recall = correct / gold if gold else 0.0
    return precision, recall, 2 * precision * recall / (precision + recall) if correct else 0.0
