"""Multi-label classification: one or two texts -> any number of the task's labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any

from reader.batches.fields import Field
from reader.system.arrays import Float32s
from tasks.kinds.base import ENCODER_FIELDS, Predictions
from tasks.kinds.checked_values import Reading, flag_of, label_of, list_of
from tasks.kinds.sentences import SentenceExample, SentenceFeatures, SentenceKind, example_means, read_sentences
from tasks.kinds.task import Task
from tasks.layouts.rows import ID, Role, Row
from tasks.metrics.metric import Scores

LABEL_SETS = Field("label_sets", "SW", "float32", "1 for each label that a sample has, 0 for the others")


class MultiLabel(SentenceKind):
    """The scores of a sample are logits of each label by itself, in the order of the task's labels."""

    name = "multi_label"
    roles = (Role("text_a"), Role("text_b", needed=False), Role("labels", is_gold=True, is_list=True), ID)
    task_fields = ("labels", "label_aliases", "empty_texts")
    metrics = ("multi_label_f1",)
    submission = "label_lists"
    head = "tasks.kinds.networks.MultiLabelHead"
    problem_type = "multi_label_classification"
    training_fields = (*ENCODER_FIELDS, LABEL_SETS)

    @staticmethod
    def read_example(row: Row, default_id: str, reading: Reading) -> SentenceExample:
        """Return the example of a row; raises RowError."""
        labels = _labels(_named(row.values.get("labels"), reading.task), reading) if reading.labelled else None
        return read_sentences(row, default_id, reading, labels)

    @staticmethod
    def labels_of(example: SentenceExample) -> tuple[str, ...]:
        """Return the labels."""
        return example.gold or ()

    def target(self, gold: Sequence[str]) -> list[bool]:
        """Return for each label whether it is among these."""
        return [label in gold for label in self.classes]

    def decode(self, scores: Float32s, features: SentenceFeatures, examples: Sequence[SentenceExample]) -> Predictions:
        """Return the labels whose probability exceeds the threshold; `probabilities` are by label."""
        from scipy.special import expit

        probabilities = example_means(expit(scores), features)
        named = [dict(zip(self.classes, map(float, row), strict=True)) for row in probabilities]
        threshold = self.settings.multi_label.threshold
        answers = [tuple(label for label, value in row.items() if value > threshold) for row in named]
        return self.predictions(examples, answers, [{"probabilities": row} for row in named])

    def answer_of(self, value: Any, example: SentenceExample) -> tuple[str, ...]:
        """Return the labels of a list."""
        return _labels(value, Reading(self.task, labelled=True, training=False))

    def evaluate(self, predictions: Predictions) -> Scores:
        """Return the scores over all labels of the task, which need not occur in the examples."""
        return super().evaluate(replace(predictions, options={"labels": self.classes}))

    @staticmethod
    def record(example: SentenceExample, answer: Sequence[str], detail: Mapping[str, Any]) -> dict[str, Any]:
        """Return the labels, and `probabilities` by label."""
        return {"labels": list(answer), **detail}


def _labels(value: Any, reading: Reading) -> tuple[str, ...]:
    """Return the distinct labels of a list, sorted. An empty field of a table is a list of one empty text: no label."""
    given = [each for each in list_of(value, "labels") if each is None or str(each).strip()]
    labels = {label_of(each, reading.task) for each in given}
    if len(labels) < len(given):
        reading.notes["rows with a label that is given twice"] += 1
    return tuple(sorted(labels))


def _named(value: Any, task: Task) -> Any:
    """Return the names of the columns or keys that are true if the task has one for each label, or else the value."""
    columns = getattr(task.layout, "columns", {}).get("labels")
    if isinstance(columns, tuple):
        # A table leaves out empty fields at the end.
        value = dict(zip_longest(columns, value if isinstance(value, list) else [value], fillvalue=""))
    if isinstance(value, Mapping):
        return [str(name) for name, flag in value.items() if flag_of(flag, str(name))]
    return value
