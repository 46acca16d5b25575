"""Regression: inputs and predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reader.tokenization.tokenizer import Tokenizer
from tasks.data.features import Float32s
from tasks.data.fields import ENCODER_FIELDS, GOLD_SCORES
from tasks.kinds.base import ANY_KIND, Kind, Predictions
from tasks.kinds.regression.example import RegressionExample, read_example
from tasks.kinds.sentences import SentenceFeatures, encode_sentences, example_means
from tasks.layouts.rows import ID, Role


class Regression(Kind[RegressionExample, SentenceFeatures]):
    """The network computes the score itself, in the unit of the gold scores."""

    name = "regression"
    roles = (Role("text_a"), Role("text_b", needed=False), Role("score", is_gold=True), ID)
    layouts = (*ANY_KIND, "csv")
    task_fields = ("score_range", "empty_texts")
    metrics = ("correlation", "mean_squared_error")
    submission = "table"
    network = "tasks.kinds.regression.network"
    paddlenlp_class = "ErnieGramForSequenceClassification"
    input_fields = ENCODER_FIELDS
    training_fields = (*ENCODER_FIELDS, GOLD_SCORES)
    read_example = staticmethod(read_example)

    @property
    def width(self) -> int:
        """1."""
        return 1

    def encode(self, examples: Sequence[RegressionExample], tokenizer: Tokenizer, training: bool) -> SentenceFeatures:
        """Return the features; a long single text has three samples in evaluation (see InputSettings.long_text)."""
        targets = [example.score for example in examples if example.score is not None]
        return encode_sentences(
            examples,
            targets if len(targets) == len(examples) else None,
            GOLD_SCORES,
            tokenizer,
            self.settings.input,
            training,
        )

    def decode(
        self, scores: Float32s, features: SentenceFeatures, examples: Sequence[RegressionExample]
    ) -> Predictions:
        """Return the scores as they are: they may lie outside the task's range, as in GLUE's own baselines."""
        answers = [float(score) for score in example_means(scores, features)[:, 0]]
        return self.predictions(examples, answers, [{} for _ in answers])

    @staticmethod
    def record(example: RegressionExample, answer: float, detail: Mapping[str, Any]) -> dict[str, Any]:
        """Return the score."""
        return {"score": answer}

    def gold_value(self, example: RegressionExample) -> float | None:
        """Return the score."""
        return example.score
