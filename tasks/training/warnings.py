"""Warnings of data and predictions that are valid, and probably not meant. Nothing here imports Paddle."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from reader.errors import counted
from reader.tokenization.vocabulary import unknown_warning
from tasks.kinds.base import Kind, Predictions
from tasks.training.data import SplitData, labels_in
from tasks.training.prepare import Finetuning

# A batch with more than this share of the samples of an epoch gives a warning.
LARGE_SHARE = 0.2
UNKNOWN_ADVICE = "start from a model whose vocabulary is of the texts' language, or larger"
# How a text without entities, and a question without answers, is shown.
NO_VALUE = "none"


def warnings_of(run: Finetuning) -> list[str]:
    """Return a line for each valid but probably unintended property of the settings and the data."""
    lines = unseen_labels(run.kind, run.evaluated, run.train)
    lines += equal_gold_values(run.kind, run.train, run.dev)
    lines += [
        f"{split.name}: {warning}"
        for split in run.splits
        if (warning := unknown_warning(split.unknown, run.model.vocabulary, UNKNOWN_ADVICE))
    ]
    if run.config.optimizer.batch_size > LARGE_SHARE * len(run.train.features):
        lines.append(
            f"optimizer.batch_size: an epoch of {counted(len(run.train.features), 'sample')} has only "
            f"{counted(run.epoch_steps, 'step')}"
        )
    if not run.dev:
        lines.append("the task has no labelled dev split here: no model is evaluated, and the last one is kept")
    elif not run.dev[0].name.startswith("dev"):
        lines.append(f"the task has no dev split: checkpoints are chosen on the split {run.dev[0].name!r}")
    return lines


def distinct_values(values: Mapping[str, Any] | Sequence[Any]) -> set[Any]:
    """Return the distinct values among gold values, in the form that a metric takes, or among predicted answers.

    A value is a label, all labels of a text, a score, the index of an option, a text, a tag, or JSON with all entities.
    """
    items = values.values() if isinstance(values, Mapping) else values
    return {each for item in items for each in _parts(item)}


def _parts(item: Any) -> Sequence[Any]:
    """Return the answers or tags that are one value of a metric, or else the value itself."""
    if isinstance(item, Mapping):
        return [json.dumps(item, ensure_ascii=False) if item else NO_VALUE]
    return (item or [NO_VALUE]) if isinstance(item, list) else [item]


def equal_gold_values(kind: Kind[Any, Any], train: SplitData, dev: Sequence[SplitData]) -> list[str]:
    """Return a line for each split whose examples all have the same gold value."""
    consequences = {train.name: "there is nothing to learn"}
    lines = []
    for split in (train, *dev):
        distinct = distinct_values(kind.gold(split.examples))
        if len(distinct) <= 1:
            consequence = consequences.get(split.name, "its score does not tell a good model from a constant one")
            lines.append(f"{split.name}: every example has the gold value {_shown(distinct)}; {consequence}")
    return lines


def equal_predictions(kind: Kind[Any, Any], split: SplitData, predictions: Predictions) -> str | None:
    """Return a line if all predictions for a split are the same although its gold values differ, otherwise None."""
    distinct = distinct_values(predictions.answers)
    if len(distinct) > 1 or len(distinct_values(kind.gold(split.examples))) <= 1:
        return None
    return (
        f"{split.name}: the prediction for every example is {_shown(distinct)}: the model has learned nothing; try "
        "another optimizer.learning_rate or seed, or more optimizer.epochs"
    )


def _shown(distinct: set[Any]) -> str:
    return repr(*distinct) if distinct else repr(NO_VALUE)


def unseen_labels(kind: Kind[Any, Any], splits: Iterable[SplitData], train: SplitData) -> list[str]:
    """Return a line for each label, or type of entity, that occurs in a split but in no training example."""
    counts = {split.name: labels_in(kind, split.examples) for split in splits}
    seen = labels_in(kind, train.examples)
    return [
        f"{name}: {counted(count, 'example')} with {kind.label_is} {label!r}, which no training example has"
        for name, labels in counts.items()
        for label, count in labels.items()
        if label not in seen
    ]
