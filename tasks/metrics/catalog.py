"""All metrics by name.

A metric is a function of the gold values and the predictions that a kind of task makes. There is at least one value,
sequences have the same rows on both sides, and all values have been checked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from tasks.metrics.answers import cmrc2018, dureader_robust, squad_v1, squad_v2
from tasks.metrics.entities import cluener, conlleval
from tasks.metrics.labels_and_scores import (
    Scores,
    accuracy,
    accuracy_by_id,
    accuracy_f1,
    correlation,
    macro_f1,
    matthews,
    multi_label_f1,
    race,
)

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
        main: name of the score that chooses checkpoints; more is better.
        reported: names of the scores that papers report.
        unit: unit of the scores, as the official scorer prints them. Counts have no unit.
        labels: the labels for which it is defined; empty if it accepts any labels.
    """

    function: Callable[..., Scores]
    kind: ValueTypes
    main: str
    reported: tuple[str, ...]
    unit: Literal["fraction", "percent"] = "fraction"
    labels: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name in METRICS (catalog.py)."""
        return self.function.__name__


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric(accuracy, "labels", "accuracy", ("accuracy",)),
        Metric(accuracy_f1, "labels", "accuracy", ("accuracy", "f1"), labels=("0", "1")),
        Metric(macro_f1, "labels", "macro_f1", ("macro_f1",)),
        Metric(multi_label_f1, "label_sets", "micro_f1", ("micro_f1", "macro_f1")),
        Metric(matthews, "labels", "matthews", ("matthews",)),
        Metric(accuracy_by_id, "labels_by_id", "accuracy", ("accuracy",)),
        Metric(race, "labels_by_id", "accuracy", ("accuracy", "high", "middle")),
        Metric(correlation, "scores", "pearson", ("pearson", "spearman")),
        Metric(squad_v1, "texts_by_id", "f1", ("exact_match", "f1"), "percent"),
        Metric(squad_v2, "texts_by_id", "f1", ("exact", "f1"), "percent"),
        Metric(cmrc2018, "texts_by_id", "average", ("em", "f1"), "percent"),
        Metric(dureader_robust, "texts_by_id", "f1", ("em", "f1"), "percent"),
        Metric(conlleval, "tag_sequences", "f1", ("f1",), "percent"),
        Metric(cluener, "spans", "f1", ("f1",)),
    )
}
