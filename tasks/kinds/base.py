"""The base class of the kinds of tasks: everything in which they differ. catalog.py lists them."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

from reader.batches.fields import INPUT_IDS, LENGTHS, SENTENCE_IDS, SLOTS, Field
from reader.system.arrays import Float32s
from tasks.kinds.checked_values import Reading
from tasks.kinds.features import Features
from tasks.kinds.settings import KindSettings
from tasks.kinds.task import Task
from tasks.layouts.rows import Place, Role, Row, Wanted
from tasks.metrics.catalog import METRICS
from tasks.metrics.labels_and_scores import Scores

if TYPE_CHECKING:
    from ernie_gram.formats.paddlenlp import TaskClass
    from reader.tokenization.tokenizer import Tokenizer


class Example(Protocol):
    """An example of any kind. Its gold value is None in a file without labels, such as the test files of GLUE.

    Attributes:
        id: unique within its file; the row's number, counted from 0, if the file has no IDs.
        place: the file and line.
    """

    @property
    def id(self) -> str: ...

    @property
    def place(self) -> Place: ...


def json_id(example: Example) -> int | str:
    """Return the ID of an example as JSON files of benchmarks have it: a number if it is written like one."""
    key = example.id
    return int(key) if re.fullmatch("0|[1-9][0-9]{0,17}", key) else key


ExampleT = TypeVar("ExampleT", bound=Example)
FeaturesT = TypeVar("FeaturesT", bound=Features)

ENCODER_FIELDS = (INPUT_IDS, LENGTHS, SENTENCE_IDS)
# Shape letter of batch fields: S samples. Kinds declare further fields beside their features.
LABELS = Field("labels", "S", "int64", "index of the label, or of the right option")

# The layouts that give the values of any kind, by column or key.
ANY_KIND = ("tsv", "csv", "json_lines")


@dataclass(frozen=True)
class Predictions:
    """The predictions for some examples.

    Attributes:
        task: with its labels.
        examples: all of a split, or of a user's texts, in the order of the file.
        answers: one for each example, as in a submission: a label, a score, the index of an option, a text, or tags.
        details: one for each example: further values by name that JSON can represent, such as probabilities.
        for_metric: the answers in the form that the task's metric takes (see tasks/metrics/catalog.py).
        options: keyword arguments of the metric; `threshold` is that for "no answer" (see SpanSettings).
    """

    task: Task
    examples: Sequence[Any]
    answers: Sequence[Any]
    details: Sequence[Mapping[str, Any]]
    for_metric: Any = None
    options: Mapping[str, Any] = field(default_factory=dict)

    def pairs(self) -> list[tuple[Any, Any]]:
        """Return each example with its answer."""
        return list(zip(self.examples, self.answers, strict=True))


class Kind(ABC, Generic[ExampleT, FeaturesT]):
    """A kind of task, for one task. Nothing here imports Paddle.

    Attributes:
        name: the name of the kind.
        roles: the values of a row of a table, or of JSON lines.
        layouts: the names of the layouts whose rows have these values (see registry/task_file.py).
        task_fields: the fields of Task that this kind reads and others do not. A kind with `labels` has labels, which
            may be found in the training file.
        metrics: the names of the metrics that apply; their functions are in tasks/metrics/.
        submission: the name of the form of submission for tasks whose benchmark defines none.
        answer_name: what `records` calls an answer; kinds with another `record` have none.
        splits_texts: whether a row may have a `text`, which the kind splits into tokens, in place of `tokens`.
        head: module and name of a subclass of KindHead (see kinds/networks.py); it is imported only when it is needed,
            because it imports Paddle. The class takes (kind, config, has_lm_transform). It computes the scores of the
            units of a batch from the encoder's rows and the fields of the batch. Its method `losses` computes a list of
            LossTerm from scores and fields.
        num_scores: how many numbers are computed for each unit; None for one of each class.
        output: the name of the output layer, whose parameters are `{output}_w` and `{output}_b`: upstream's name, or
            another one that begins with `cls_`.
        paddlenlp_class: the class of PaddleNLP that holds a model of this kind; None if there is none.
        problem_type: what config.json calls the kind, of those that share a class; "" for the usual one of the class.
        input_fields: the batch fields that prediction reads; training_fields: those that training reads. The last of
            these has one gold value for each row of the loss.
        task, settings: as given to the constructor.
    """

    name: ClassVar[str]
    roles: ClassVar[tuple[Role, ...]]
    layouts: ClassVar[tuple[str, ...]] = ANY_KIND
    task_fields: ClassVar[tuple[str, ...]] = ()
    metrics: ClassVar[tuple[str, ...]]
    submission: ClassVar[str]
    answer_name: ClassVar[str]
    splits_texts: ClassVar[bool] = False
    head: ClassVar[str]
    num_scores: ClassVar[int | None] = None
    output: ClassVar[str] = "cls_out"
    paddlenlp_class: ClassVar[TaskClass | None] = None
    problem_type: ClassVar[str] = ""
    input_fields: ClassVar[tuple[Field, ...]]
    training_fields: ClassVar[tuple[Field, ...]]

    def __init__(self, task: Task, settings: KindSettings) -> None:
        """`task` must have its labels (see load.with_labels)."""
        assert not self.needs_labels(task)
        self.task, self.settings = task, settings

    @classmethod
    def needs_labels(cls, task: Task) -> bool:
        """Return whether the labels of a task are still to be found in its training file."""
        return "labels" in cls.task_fields and task.labels is None

    @classmethod
    def wanted(cls, labelled: bool) -> Wanted:
        """Return what a layout is to read from a file with or without gold values."""
        texts = (Role("text"),) if cls.splits_texts else ()
        return {role.name: role for role in (*cls.roles, *texts) if labelled or not role.is_gold}

    @staticmethod
    @abstractmethod
    def read_example(row: Row, default_id: str, reading: Reading) -> ExampleT:
        """Return the example of a row; raises BadRow, which is OmittedRow if the task leaves out the row on purpose."""

    @staticmethod
    def labels_of(example: ExampleT) -> Iterable[str]:
        """Return the distinct gold labels, or types of entities, of an example; none for kinds without labels."""
        return ()

    @property
    def classes(self) -> tuple[str, ...]:
        """The classes whose logits are the scores of a unit, by default the labels; empty without labels."""
        return self.task.labels or ()

    @property
    def width(self) -> int:
        """The number of scores that the network computes for each unit."""
        return self.num_scores or len(self.classes)

    @property
    def has_pooler(self) -> bool:
        """Whether the model's pooler is a part of the head: it is none of heads that score single slots."""
        return SLOTS not in self.input_fields and self.settings.head.sentence_output == "pooled"

    @abstractmethod
    def encode(self, examples: Sequence[ExampleT], tokenizer: Tokenizer, training: bool) -> FeaturesT:
        """Return the features of some examples.

        Args:
            training: whether a model is trained on them; in training, every example needs its gold value.
        """

    @abstractmethod
    def decode(self, scores: Float32s, features: FeaturesT, examples: Sequence[ExampleT]) -> Predictions:
        """Return the predictions.

        Args:
            scores: float32 [U, width], the network's numbers for all units of `features`.
            features: those of `examples`, encoded with training=False.
        """

    def predictions(
        self, examples: Sequence[ExampleT], answers: Sequence[Any], details: Sequence[Mapping[str, Any]]
    ) -> Predictions:
        """Return Predictions whose answers are what the metric takes."""
        return Predictions(self.task, examples, answers, details, self.keyed(answers, examples))

    def record(self, example: ExampleT, answer: Any, detail: Mapping[str, Any]) -> dict[str, Any]:
        """Return a prediction as `records` has it, without the ID: the answer, and its details."""
        return {self.answer_name: answer, **detail}

    def records(self, predictions: Predictions) -> list[dict[str, Any]]:
        """Return one JSON object for each example, in order, with its `id`, for users and programs (see `record`).

        IDs are numbers if all are written like one, else texts.
        """
        ids = [json_id(example) for example in predictions.examples]
        if not all(isinstance(each, int) for each in ids):
            ids = [example.id for example in predictions.examples]
        rows = zip(ids, predictions.examples, predictions.answers, predictions.details, strict=True)
        return [{"id": each, **self.record(example, answer, detail)} for each, example, answer, detail in rows]

    @abstractmethod
    def answer_of(self, value: Any, example: ExampleT) -> Any:
        """Return the answer that a submission has for an example, as the task's metric takes it.

        Args:
            value: what a file has: a text, a JSON value, or the tuple of the tags of all tokens (see TagReader).

        Raises BadRow for a value that is no answer.
        """

    @abstractmethod
    def gold_value(self, example: ExampleT) -> Any:
        """Return the gold value of a labelled example, as the task's metric takes it."""

    def gold(self, examples: Sequence[ExampleT]) -> Any:
        """Return the gold values of labelled examples in the form that the task's metric takes."""
        return self.keyed([self.gold_value(example) for example in examples], examples)

    def evaluate(self, predictions: Predictions) -> Scores:
        """Return the scores that the task's metric gives for labelled examples, by name."""
        metric = METRICS[self.task.metric]
        return metric.function(self.gold(predictions.examples), predictions.for_metric, **predictions.options)

    def constant_answer(self, examples: Sequence[ExampleT]) -> Any:
        """Return the best answer that ignores the texts, found in training examples; None for most kinds."""
        return None

    def keyed(self, values: Sequence[Any], examples: Sequence[ExampleT]) -> Any:
        """Return a value for each example as the metric takes it: by ID if it finds values by ID, or else in order."""
        ids = (example.id for example in examples)
        return dict(zip(ids, values, strict=True)) if self.is_scored_by_id else list(values)

    @property
    def is_scored_by_id(self) -> bool:
        """Whether the task's metric finds answers by ID."""
        return METRICS[self.task.metric].kind.endswith("by_id")
