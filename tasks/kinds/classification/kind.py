"""Classification: inputs and predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reader.tokenization.tokenizer import Tokenizer
from tasks.data.features import Float32s
from tasks.data.fields import ENCODER_FIELDS, LABELS
from tasks.kinds.base import ANY_KIND, Kind, Predictions
from tasks.kinds.classification.example import ClassificationExample, read_example
from tasks.kinds.sentences import SentenceFeatures, encode_sentences, example_means
from tasks.kinds.softmax import softmax
from tasks.layouts.rows import ID, Role


class Classification(Kind[ClassificationExample, SentenceFeatures]):
    """The scores of a sample are logits over the labels, in the order of the task's labels."""

    name = "classification"
    roles = (Role("text_a"), Role("text_b", needed=False), Role("label", is_gold=True), ID)
    layouts = (*ANY_KIND, "csv", "text_folders", "cluewsc")
    task_fields = ("labels", "label_aliases", "omitted_labels", "empty_texts")
    metrics = ("accuracy", "accuracy_f1", "macro_f1", "matthews")
    submission = "table"
    network = "tasks.kinds.classification.network"
    paddlenlp_class = "ErnieGramForSequenceClassification"
    input_fields = ENCODER_FIELDS
    training_fields = (*ENCODER_FIELDS, LABELS)
    read_example = staticmethod(read_example)

    @staticmethod
    def labels_of(example: ClassificationExample) -> tuple[str, ...]:
        """Return the label, if there is one."""
        return () if example.label is None else (example.label,)

    @property
    def classes(self) -> tuple[str, ...]:
        """The task's labels."""
        assert self.task.labels is not None
        return self.task.labels

    def encode(
        self, examples: Sequence[ClassificationExample], tokenizer: Tokenizer, training: bool
    ) -> SentenceFeatures:
        """Return the features; a long single text has three samples in evaluation (see InputSettings.long_text)."""
        index = {label: i for i, label in enumerate(self.classes)}
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
    ) -> Predictions:
        """Return the label with the highest probability, the first of equal ones; `probabilities` are by label."""
        probabilities = example_means(softmax(scores), features)
        answers = [self.classes[best] for best in probabilities.argmax(1)]
        details = [{"probabilities": dict(zip(self.classes, map(float, row), strict=True))} for row in probabilities]
        return self.predictions(examples, answers, details)

    @staticmethod
    def record(example: ClassificationExample, answer: str, detail: Mapping[str, Any]) -> dict[str, Any]:
        """Return the label, and `probabilities` by label."""
        return {"label": answer, **detail}

    def gold_value(self, example: ClassificationExample) -> str | None:
        """Return the label."""
        return example.label
