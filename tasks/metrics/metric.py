"""The record of a metric, and the checks and arithmetic that several metrics share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from reader.errors import InputError
from reader.plurals import counted

Scores = dict[str, float]

# Types of `gold` and of `predictions`, in this order, for each kind of input:
#   labels:        Sequence[label], Sequence[label]; row i of both is the same example; a label is a str or an int
#   labels_by_id:  Mapping[id, label], Mapping[id, label]
#   scores:        Sequence[float], Sequence[float]
#   texts_by_id:   Mapping[id, Sequence[str]] (the accepted answers), Mapping[id, str]
#   tag_sequences: Sequence[Sequence[str]], Sequence[Sequence[str]]; one inner sequence per sentence
#   spans:         Sequence[SpanLabels], Sequence[SpanLabels]; see entities.py
ValueTypes = Literal["labels", "labels_by_id", "scores", "texts_by_id", "tag_sequences", "spans"]


@dataclass(frozen=True)
class Metric:
    """A way to score predictions.

    Attributes:
        name: key in METRICS (catalog.py).
        description: what is computed, and the tasks that use it.
        kind: the types of `gold` and `predictions`.
        function: (gold, predictions, **options) -> scores by name. Raises InputError for input that cannot be scored.
        main: name of the score that chooses checkpoints.
        unit: unit of the scores that are scores, as the official scorer prints them. Counts have no unit.
        direction: whether a larger ("max") or a smaller ("min") main score is better.
        options: names of the keyword arguments that `function` accepts.
        labels: the labels that it is defined for; empty if it is for all.
    """

    name: str
    description: str
    kind: ValueTypes
    function: Callable[..., Scores]
    main: str
    unit: Literal["fraction", "percent", "none"]
    direction: Literal["max", "min"] = "max"
    options: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()

    def __call__(self, gold: Any, predictions: Any, **options: Any) -> Scores:
        """Return the scores of some predictions."""
        return self.function(gold, predictions, **options)


def check_rows(gold: Sequence[Any], predictions: Sequence[Any], row: str = "row") -> None:
    """Raise InputError unless there is exactly one prediction for each row, and at least one row."""
    if len(gold) != len(predictions):
        predicted, expected = counted(len(predictions), row), counted(len(gold), row)
        raise InputError(f"{predicted} of predictions for {expected} of gold data; give one each")
    check_not_empty(gold)


def check_not_empty(gold: Sequence[Any] | Mapping[str, Any]) -> None:
    """Raise InputError if there is nothing to score: no official scorer defines a score for that."""
    if len(gold) == 0:
        raise InputError("the gold data is empty; there is nothing to score")


def percent(values: Iterable[float], total: int) -> float:
    """Return 100 * sum / total, with the operations in the order of the official scripts: equal to the last bit."""
    return 100.0 * sum(values) / total


def precision_recall_f1(correct: int, predicted: int, gold: int) -> tuple[float, float, float]:
    """Return precision, recall and F1 as fractions; a score whose denominator is zero is 0, as in conlleval."""
    precision = correct / predicted if predicted else 0.0
    recall = correct / gold if gold else 0.0
    return precision, recall, 2 * precision * recall / (precision + recall) if correct else 0.0
