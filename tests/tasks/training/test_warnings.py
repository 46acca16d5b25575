"""Gold values and predictions that are all the same, in the form that each kind of metric takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tasks.kinds.tagging import TaggingExample, span_labels
from tasks.layouts.rows import Place
from tasks.metrics.entities import Entity
from tasks.training.warnings import distinct_values, equal_gold_values, equal_predictions


def entities(text: str, *types: str) -> object:
    """Return entities of one character each, as CLUENER's metric takes them."""
    example = TaggingExample("0", tuple(text), "", None, None, Place(Path("dev.json")))
    return span_labels(example, [Entity(name, at, at + 1) for at, name in enumerate(types)])


class Gold:
    """A kind, and a split of it, whose gold values are given."""

    name = "dev"
    examples = ()

    def __init__(self, values: Any) -> None:
        self.values = values

    def gold(self, examples: Any) -> Any:
        return self.values


@pytest.mark.parametrize(
    ("values", "distinct"),
    [
        (["a", "b", "a"], {"a", "b"}),
        ({"1": 0, "2": 0}, {0}),
        ([0.5, 0.5], {0.5}),
        ([("a", "b"), ()], {("a", "b"), ()}),
        ([["O", "O"], ["B-X", "O"]], {"O", "B-X"}),
        ([entities("甲乙"), entities("甲乙", "X")], {"none", '{"X": {"甲": [[0, 0]]}}'}),
        ([entities("甲"), entities("乙")], {"none"}),
        ({"1": ["the", "a"], "2": []}, {"the", "a", "none"}),
        ([], set()),
    ],
)
def test_values_of_every_form_are_compared(values: Any, distinct: set[Any]) -> None:
    assert distinct_values(values) == distinct
    given: Any = Gold(values)
    lines = equal_gold_values(given, given, ())
    assert len(lines) == (len(distinct) <= 1)
    assert all("dev: every example has the gold value " in line for line in lines)


@pytest.mark.parametrize(
    ("gold", "predictions", "shown"),
    [
        (["a", "b"], ["a", "a"], "'a'"),
        ({"1": ["x"], "2": ["y"]}, ["", ""], "''"),
        ([["O", "B-X"]], [["O", "O"]], "'O'"),
        ([entities("甲", "X"), entities("乙", "X")], [{}, {}], "'none'"),
        ([entities("甲", "X"), entities("乙", "X")], [entities("甲", "X"), {}], None),
        ([0.1, 0.2], [0.5, 0.5], "0.5"),
        (["a", "b"], ["b", "a"], None),
        (["a", "a"], ["a", "a"], None),
    ],
)
def test_equal_predictions_of_different_examples_are_named(gold: Any, predictions: Any, shown: str | None) -> None:
    kind: Any = Gold(gold)
    # What a metric takes may differ: the texts of SQuAD 2.0 before the threshold of questions without answer.
    given: Any = type("Predictions", (), {"answers": predictions, "for_metric": ["x", "y"]})
    line = equal_predictions(kind, kind, given)
    if shown is None:
        assert line is None
    else:
        assert line is not None
        assert line.startswith(f"dev: the prediction for every example is {shown}: ")
