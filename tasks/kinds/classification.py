"""Classification: one or two texts -> one of the task's labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from reader.system.arrays import Float32s
from tasks.kinds.base import ANY_KIND, ENCODER_FIELDS, LABELS, Predictions
from tasks.kinds.checked_values import Reading, label_of
from tasks.kinds.sentences import SentenceExample, SentenceFeatures, SentenceKind, example_means, read_sentences
from tasks.layouts.rows import ID, Role, Row


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
