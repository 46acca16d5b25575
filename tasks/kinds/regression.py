"""Regression: one or two texts -> a score."""

from __future__ import annotations

from collections.abc import Sequence

from reader.tokenization.tokenizer import Tokenizer
from tasks.data.examples import RegressionExample
from tasks.data.fields import ENCODER_FIELDS, GOLD_SCORES
from tasks.kinds.base import Decoded, Float32s, Kind
from tasks.kinds.sentences import SentenceFeatures, encode_sentences, example_means


class Regression(Kind[RegressionExample, SentenceFeatures]):
    """The network computes the score itself, in the unit of the gold scores."""

    name = "regression"
    input_fields = ENCODER_FIELDS
    training_fields = (*ENCODER_FIELDS, GOLD_SCORES)

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

    def decode(self, scores: Float32s, features: SentenceFeatures, examples: Sequence[RegressionExample]) -> Decoded:
        """Return the scores as they are: they may lie outside the task's range, as in GLUE's own baselines."""
        answers = [float(score) for score in example_means(scores, features)[:, 0]]
        return Decoded(answers, answers, [{} for _ in answers])

    def gold(self, examples: Sequence[RegressionExample]) -> object:
        """Return the gold scores."""
        return [example.score for example in examples]
