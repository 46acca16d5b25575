"""Warnings about labels and types of entities that no training example has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tasks.data.examples import ClassificationExample, Entity, Example, TaggingExample
from tasks.reading.load import Report
from tasks.training.splits import SplitData, unseen_labels
from tests.tasks.kinds.tiny import PLACE

REPORT = Report("task", "dev", (), 0, 0, (), (), {})
NO_FEATURES: Any = None


def split(name: str, examples: Sequence[Example]) -> SplitData:
    return SplitData(name, [*examples], NO_FEATURES, REPORT)


def labelled(*labels: str) -> list[Example]:
    return [ClassificationExample(str(i), "a", None, label, PLACE) for i, label in enumerate(labels)]


def tagged(*types: str) -> list[Example]:
    tokens, tags = ("a",), ("O",)
    return [TaggingExample(str(i), tokens, " ", tags, (Entity(kind, 0, 1),), PLACE) for i, kind in enumerate(types)]


def test_labels_that_no_training_example_has_are_counted() -> None:
    lines = unseen_labels([split("dev", labelled("0", "2", "2"))], split("train", labelled("0", "1")))
    assert lines == ["dev: 2 examples with the label '2', which no training example has"]


def test_types_of_entities_that_no_training_example_has_are_counted() -> None:
    splits = [split("dev", tagged("PER", "LOC")), split("test", tagged("ORG", "PER"))]
    assert unseen_labels(splits, split("train", tagged("PER", "LOC"))) == [
        "test: 1 example with an entity 'ORG', which no training example has"
    ]
