"""Regression: one or two texts -> a score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reader.batches.fields import Field
from reader.system.arrays import Float32s
from tasks.kinds.base import ENCODER_FIELDS, Predictions
from tasks.kinds.checked_values import Reading, score_of
from tasks.kinds.sentences import SentenceExample, SentenceFeatures, SentenceKind, example_means, read_sentences
from tasks.layouts.rows import ID, Role, Row

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
