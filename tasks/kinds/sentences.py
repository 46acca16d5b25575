"""One or two texts -> one label (classification), any number of labels (multi-label), or a score (regression)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import numpy as np

from reader.batches.fields import Field
from reader.system.arrays import Float32s
from tasks.kinds.base import ANY_KIND, ENCODER_FIELDS, LABELS, Kind, Predictions
from tasks.kinds.checked_values import Reading, flag_of, id_of, label_of, list_of, score_of, text_of
from tasks.kinds.features import Features, InputsBuilder, tokenize
from tasks.kinds.task import Task
from tasks.layouts.rows import ID, Place, Role, Row
from tasks.metrics.labels_and_scores import Scores

if TYPE_CHECKING:
    from reader.tokenization.tokenizer import Tokenizer


@dataclass(frozen=True)
class SentenceExample:
    """One or two texts, and a gold value.

    Attributes:
        id: unique within its file; the row's number, counted from 0, if the file has no IDs.
        text_b: None if the task has single texts.
        gold: a label in the official spelling, which is one of the task's labels; or a score.
        place: the file and line.
    """

    id: str
    text_a: str
    text_b: str | None
    gold: Any
    place: Place


def truncated_pair(first: int, second: int, room: int) -> tuple[int, int]:
    """Return how many tokens of two texts remain if the longer one loses tokens until both fit into `room`.

    One token is removed at a time; the second text loses one if both are equally long, as in BERT.
    """
    kept = min(first, max(room - second, (room + 1) // 2))
    return kept, min(second, room - kept)


def read_sentences(row: Row, default_id: str, reading: Reading, gold: Any) -> SentenceExample:
    """Return an example of one or two texts; raises BadRow.

    Empty texts are accepted in a benchmark's file without labels, because every row needs a prediction.
    """
    row_id = id_of(row.values, default_id)
    may_be_empty = not reading.own and (reading.task.empty_texts or not reading.labelled)
    text_a = text_of(row.values.get("text_a"), "text_a", may_be_empty)
    text_b = text_of(row.values["text_b"], "text_b", may_be_empty) if "text_b" in row.values else None
    return SentenceExample(row_id, text_a, text_b, gold, row.place)


class SentenceKind(Kind[SentenceExample, Features]):
    """What the kinds of one or two texts share. The last one of `training_fields` holds the gold values."""

    submission = "table"
    paddlenlp_class = "ErnieGramForSequenceClassification"
    input_fields = ENCODER_FIELDS

    def target(self, gold: Any) -> Any:
        """Return a gold value as the batch field stores it: a number, or several numbers."""
        return gold

    def gold_value(self, example: SentenceExample) -> Any:
        """Return the label or the score."""
        return example.gold

    def encode(self, examples: Sequence[SentenceExample], tokenizer: Tokenizer, training: bool) -> Features:
        """Return the features. The longer text loses its last tokens first."""
        targets = [self.target(example.gold) for example in examples if example.gold is not None]
        field, count = self.training_fields[-1], len(examples)
        texts = [example.text_a for example in examples] + [example.text_b or "" for example in examples]
        table, builder = tokenize(tokenizer.encode_batch, texts), InputsBuilder(tokenizer.vocabulary)
        num_long = 0
        for index, example in enumerate(examples):
            a, b, is_pair = table[index].ids, table[count + index].ids, example.text_b is not None
            room = self.settings.input.max_seq_len - 2 - is_pair
            kept_a, kept_b = truncated_pair(len(a), len(b), room)
            builder.add([a[:kept_a]], [b[:kept_b]] if is_pair else None)
            num_long += len(a) + len(b) > room
        samples = np.arange(count + 1)
        return Features(
            inputs=builder.inputs(),
            input_offsets=samples,
            unit_offsets=samples,
            example_of=samples[:-1],
            counts={"examples longer than an input": num_long},
            gold={field.name: np.array(targets, field.dtype)} if len(targets) == count else {},
        )


class Classification(SentenceKind):
    """The scores of a sample are logits over the labels, in the order of the task's labels."""

    name = "classification"
    roles = (Role("text_a"), Role("text_b", needed=False), Role("label", is_gold=True), ID)
    layouts = (*ANY_KIND, "text_folders", "cluewsc")
    task_fields = ("labels", "label_aliases", "omitted_labels", "empty_texts")
    metrics = ("accuracy", "accuracy_f1", "macro_f1", "matthews")
    answer_name = "label"
    head = "tasks.kinds.networks.SentenceHead"
    training_fields = (*ENCODER_FIELDS, LABELS)

    @staticmethod
    def read_example(row: Row, default_id: str, reading: Reading) -> SentenceExample:
        """Return the example of a row; raises BadRow."""
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

    def target(self, gold: str) -> int:
        """Return the index of a label."""
        return self.classes.index(gold)

    def decode(self, scores: Float32s, features: Features, examples: Sequence[SentenceExample]) -> Predictions:
        """Return the label with the highest probability, the first of equal ones; `probabilities` are by label."""
        from scipy.special import softmax

        probabilities = softmax(scores, axis=-1)
        answers = [self.classes[best] for best in probabilities.argmax(1)]
        details = [{"probabilities": dict(zip(self.classes, map(float, row), strict=True))} for row in probabilities]
        return self.predictions(examples, answers, details)

    def answer_of(self, value: Any, example: SentenceExample) -> str:
        """Return the label."""
        return label_of(value, self.task)


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
        """Return the example of a row; raises BadRow."""
        labels = _labels(_named(row.values.get("labels"), reading.task), reading.task) if reading.labelled else None
        return read_sentences(row, default_id, reading, labels)

    @staticmethod
    def labels_of(example: SentenceExample) -> tuple[str, ...]:
        """Return the labels."""
        return example.gold or ()

    def target(self, gold: Sequence[str]) -> list[bool]:
        """Return for each label whether it is among these."""
        return [label in gold for label in self.classes]

    def decode(self, scores: Float32s, features: Features, examples: Sequence[SentenceExample]) -> Predictions:
        """Return the labels whose probability exceeds one half; `probabilities` are by label."""
        from scipy.special import expit

        probabilities = expit(scores)
        named = [dict(zip(self.classes, map(float, row), strict=True)) for row in probabilities]
        answers = [tuple(label for label, value in row.items() if value > 0.5) for row in named]
        return self.predictions(examples, answers, [{"probabilities": row} for row in named])

    def answer_of(self, value: Any, example: SentenceExample) -> tuple[str, ...]:
        """Return the labels of a list."""
        return _labels(value, self.task)

    def evaluate(self, predictions: Predictions) -> Scores:
        """Return the scores over all labels of the task, which need not occur in the examples."""
        return super().evaluate(replace(predictions, options={"labels": self.classes}))

    def record(self, example: SentenceExample, answer: Sequence[str], detail: Mapping[str, Any]) -> dict[str, Any]:
        """Return the labels, and `probabilities` by label."""
        return {"labels": list(answer), **detail}


def _labels(value: Any, task: Task) -> tuple[str, ...]:
    """Return the distinct labels of a list, sorted. An empty field of a table is a list of one empty text: no label."""
    given = [each for each in list_of(value, "labels") if each is None or str(each).strip()]
    return tuple(sorted({label_of(each, task) for each in given}))


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
    metrics = ("correlation",)
    answer_name = "score"
    head = "tasks.kinds.networks.RegressionHead"
    num_scores = 1
    problem_type = "regression"
    training_fields = (*ENCODER_FIELDS, GOLD_SCORES)

    @staticmethod
    def read_example(row: Row, default_id: str, reading: Reading) -> SentenceExample:
        """Return the example of a row; raises BadRow."""
        score = score_of(row.values.get("score"), reading.task.score_range) if reading.labelled else None
        return read_sentences(row, default_id, reading, score)

    def decode(self, scores: Float32s, features: Features, examples: Sequence[SentenceExample]) -> Predictions:
        """Return the scores as they are: they may lie outside the task's range."""
        answers = [float(score) for score in scores[:, 0]]
        return self.predictions(examples, answers, [{} for _ in answers])

    def answer_of(self, value: Any, example: SentenceExample) -> float:
        """Return the score, which may lie outside the task's range."""
        return score_of(value)
