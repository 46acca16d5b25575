"""The protocol of the five kinds of tasks.

A kind encodes examples as features, and decodes the scores that the network computes for them. It loads without Paddle;
the network that belongs to it is built in tasks/training/network.py.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from reader.batches.fields import Field
from reader.tokenization.tokenizer import Tokenizer
from tasks.data.features import Features
from tasks.kinds.settings import KindSettings
from tasks.metrics.catalog import METRICS
from tasks.metrics.metric import Figures
from tasks.registry.task import Kind as KindName
from tasks.registry.task import Task

Float32s = npt.NDArray[np.float32]
ExampleT = TypeVar("ExampleT")
FeaturesT = TypeVar("FeaturesT", bound=Features)


@dataclass(frozen=True)
class Decoded:
    """The predictions of a split.

    Attributes:
        predictions: in the form that the task's metric takes (see tasks/metrics/metric.py).
        answers: one for each example, in order: what a submission has. A label, a score, the index of an option, a
            text, or tags.
        details: one for each example, in order: further values by name that JSON can represent, such as probabilities.
        options: keyword arguments of the metric.
        null_threshold: that was used, of tasks whose questions may be unanswerable (see SpanSettings).
    """

    predictions: Any
    answers: Sequence[Any]
    details: Sequence[Mapping[str, Any]]
    options: Mapping[str, Any] = field(default_factory=dict)
    null_threshold: float | None = None


class Kind(ABC, Generic[ExampleT, FeaturesT]):
    """A kind of task, for one task.

    Attributes:
        name: of the kind; task, settings: as given.
        input_fields: the batch fields that prediction reads; training_fields: those that training reads.
    """

    name: ClassVar[KindName]
    input_fields: ClassVar[tuple[Field, ...]]
    training_fields: ClassVar[tuple[Field, ...]]

    def __init__(self, task: Task, settings: KindSettings) -> None:
        """Take a task whose labels are known (see load.with_labels)."""
        assert not task.needs_labels
        self.task, self.settings = task, settings

    @property
    @abstractmethod
    def width(self) -> int:
        """Numbers that the network computes for each unit."""

    @abstractmethod
    def encode(self, examples: Sequence[ExampleT], tokenizer: Tokenizer, training: bool) -> FeaturesT:
        """Return the features of some examples.

        Args:
            training: whether a model is trained on them; in training, every example needs its gold value.
        """

    @abstractmethod
    def decode(self, scores: Float32s, features: FeaturesT, examples: Sequence[ExampleT]) -> Decoded:
        """Return the predictions.

        Args:
            scores: float32 [U, width], the network's numbers for all units of `features`.
            features: those of `examples`, encoded with training=False.
        """

    @abstractmethod
    def gold(self, examples: Sequence[ExampleT]) -> Any:
        """Return the gold values of labelled examples in the form that the task's metric takes."""

    def figures(self, decoded: Decoded, examples: Sequence[ExampleT]) -> Figures:
        """Return the figures of the task's metric for labelled examples."""
        return METRICS[self.task.metric](self.gold(examples), decoded.predictions, **decoded.options)

    def with_null_threshold(self, threshold: float | None) -> Kind[ExampleT, FeaturesT]:
        """Return the kind with another threshold for "no answer" (see SpanSettings)."""
        return type(self)(self.task, self.settings.with_null_threshold(threshold))

    def keyed(self, values: Sequence[Any], ids: Sequence[str]) -> Any:
        """Return a value for each example as the metric takes it: by ID if it finds values by ID, or else in order."""
        return dict(zip(ids, values, strict=True)) if METRICS[self.task.metric].kind.endswith("by_id") else list(values)
