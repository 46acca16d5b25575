"""Classification: one or two texts -> one of the task's labels."""

from __future__ import annotations

from collections.abc import Sequence

from reader.tokenization.tokenizer import Tokenizer
from tasks.data.examples import ClassificationExample
from tasks.data.fields import ENCODER_FIELDS, LABELS
from tasks.kinds.base import Decoded, Float32s, Kind
from tasks.kinds.sentences import SentenceFeatures, encode_sentences, example_means
from tasks.kinds.softmax import softmax


class Classification(Kind[ClassificationExample, SentenceFeatures]):
    """The scores of a sample are logits over the labels, in the order of the task's labels."""

    name = "classification"
    input_fields = ENCODER_FIELDS
    training_fields = (*ENCODER_FIELDS, LABELS)

    @property
    def labels(self) -> tuple[str, ...]:
        """The task's labels."""
        assert self.task.labels is not None
        return self.task.labels

    @property
    def width(self) -> int:
        """The number of labels."""
        return len(self.labels)

    def encode(
        self, examples: Sequence[ClassificationExample], tokenizer: Tokenizer, training: bool
    ) -> SentenceFeatures:
        """Return the features; a long single text has three samples in evaluation (see InputSettings.long_text)."""
        index = {label: i for i, label in enumerate(self.labels)}
        targets = [index[example.label] for example in examples if example.label is not None]
        return encode_sentences(
            examples,
            targets if len(targets) == len(examples) else None,
            LABELS,
            tokenizer,
            self.settings.input,
            training,
        )

    def decode(
        self, scores: Float32s, features: SentenceFeatures, examples: Sequence[ClassificationExample]
    ) -> Decoded:
        """Return the label with the highest probability, the first of equal ones; `probabilities` are by label."""
        probabilities = example_means(softmax(scores), features)
        answers = [self.labels[best] for best in probabilities.argmax(1)]
        details = [{"probabilities": dict(zip(self.labels, map(float, row), strict=True))} for row in probabilities]
        return Decoded(self.keyed(answers, [example.id for example in examples]), answers, details)

    def gold(self, examples: Sequence[ClassificationExample]) -> object:
        """Return the gold labels."""
        return self.keyed([example.label for example in examples], [example.id for example in examples])
