"""One or two texts -> one label (classification), any number of labels (multi-label), or a score (regression)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any

from reader.batches.fields import Field
from reader.system.arrays import Float32s
from tasks.kinds.base import ANY_KIND, ENCODER_FIELDS, LABELS, Predictions
from tasks.kinds.checked_values import Reading, flag_of, label_of, list_of, score_of
from tasks.kinds.sentences import SentenceExample, SentenceFeatures, SentenceKind, example_means, read_sentences
from tasks.kinds.task import Task
from tasks.layouts.rows import ID, Role, Row
from tasks.metrics.labels_and_scores import Scores


class Classification(SentenceKind):
    """The scores of a sample are logits over the labels, in the order of the task's labels."""

    name = "classification"
    roles = (Role("text_a"), Role("text_b", needed=False), Role("label", is_gold=True), ID)
    layouts = (*ANY_KIND, "text_folders", "cluewsc")
    task_fields = ("labels", "label_aliases", "omitted_labels", "empty_texts")
    metrics = ("accuracy", "accuracy_f1", "macro_f1", "matthews")
    head = "tasks.kinds.networks.ClassificationHead"
    training_fields = (*ENCODER_FIELDS, LABELS)

    @staticmethod
    def read_example(row: Row, default_id: str, reading: Reading) -> SentenceExample:
        """Return the example of a row; raises RowError or OmittedError."""
        # The label first: a row without a gold label is left out, whatever its texts are.
        label = label_of(row.values.get("label"), reading.task) if reading.labelled else None
        return read_sentences(row, default_id, reading, label)

    @staticmethod
    def labels_of(example: SentenceExample) -> tuple[str, ...]:
        """Return the label, if there is one."""
        return () if example.gold is None else (example.gold,)

    def constant_answer(self, examples: Sequence[SentenceExample]) -> str:
        """Return the most frequent label."""
        return Counter(example.gold for example in examples).most_common(1)[0][0]

    def confusion(self, predictions: Predictions) -> dict[str, dict[str, int]]:
        """Return for each gold label how often each label was predicted; pairs that do not occur are left out."""
        counts: dict[str, dict[str, int]] = {}
        for (gold, answer), count in sorted(Counter((e.gold, answer) for e, answer in predictions.pairs()).items()):
            counts.setdefault(gold, {})[answer] = count
        return counts

    def target(self, gold: str) -> int:
        """Return the index of a label."""
        return self.classes.index(gold)

    def decode(self, scores: Float32s, features: SentenceFeatures, examples: Sequence[SentenceExample]) -> Predictions:
        """Return the label with the highest probability, the first of equal ones; `probabilities` are by label."""
        from scipy.special import softmax

        probabilities = example_means(softmax(scores, axis=-1), features)
        answers = [self.classes[best] for best in probabilities.argmax(1)]
        details = [{"probabilities": dict(zip(self.classes, map(float, row), strict=True))} for row in probabilities]
        return self.predictions(examples, answers, details)

    def answer_of(self, value: Any, example: SentenceExample) -> str:
        """Return the label."""
        return label_of(value, self.task)

    @staticmethod
    def record(example: SentenceExample, answer: str, detail: Mapping[str, Any]) -> dict[str, Any]:
        """Return the label, and `probabilities` by label."""
        return {"label": answer, **detail}


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


GOLD_SCORES = Field("gold_scores", "S", "float32", "gold score of a regression, in its own unit")


class Regression(SentenceKind):
    """The network computes the score itself, in the unit of the gold scores."""

    name = "regression"
    roles = (Role("text_a"), Role("text_b", needed=False), Role("score", is_gold=True), ID)
    task_fields = ("score_range", "empty_texts")
    metrics = ("correlation", "mean_squared_error")
    head = "tasks.kinds.networks.RegressionHead"
    problem_type = "regression"
    training_fields = (*ENCODER_FIELDS, GOLD_SCORES)

    @staticmethod
    def read_example(row: Row, default_id: str, reading: Reading) -> SentenceExample:
        """Return the example of a row; raises RowError."""
        score = score_of(row.values.get("score"), reading.task.score_range) if reading.labelled else None
        return read_sentences(row, default_id, reading, score)

    @property
    def width(self) -> int:
        """1, the score."""
        return 1

    def decode(self, scores: Float32s, features: SentenceFeatures, examples: Sequence[SentenceExample]) -> Predictions:
        """Return the scores as they are: they may lie outside the task's range."""
        answers = [float(score) for score in example_means(scores, features)[:, 0]]
        return self.predictions(examples, answers, [{} for _ in answers])

    def answer_of(self, value: Any, example: SentenceExample) -> float:
        """Return the score, which may lie outside the task's range."""
        return score_of(value)

    @staticmethod
    def record(example: SentenceExample, answer: float, detail: Mapping[str, Any]) -> dict[str, Any]:
        """Return the score."""
        return {"score": answer}
