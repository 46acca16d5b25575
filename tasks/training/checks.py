"""Checks of settings against the model, the data and the metric. Nothing here imports Paddle."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ernie_gram.config.checks import require
from ernie_gram.formats.model import Model
from reader.errors import counted, located
from reader.system.arrays import Float32s
from tasks.data.batches import epoch_steps
from tasks.kinds.base import Kind, Predictions
from tasks.metrics.catalog import METRICS
from tasks.metrics.metric import Scores
from tasks.training.config import FinetuneConfig
from tasks.training.splits import SplitData

# How a text without entities, and a question without answers, is shown.
NO_VALUE = "none"


def check_model(config: FinetuneConfig, model: Model) -> None:
    """Raise InputError unless a model can be fine-tuned with these settings."""
    positions = len(model.parameters["pos_embedding"])
    require(
        config.input.max_seq_len <= positions,
        "input.max_seq_len",
        f"{config.input.max_seq_len} exceeds the {positions} positions of {model.source}; give --input.max_seq_len "
        f"{positions}",
    )


def check_sentence_types(model: Model, splits: Iterable[SplitData]) -> None:
    """Raise InputError if there are pairs of texts, and the model has only one sentence type."""
    inputs = [split.features.inputs for split in splits]
    require(
        model.config.has_sentence_types or not any((each.seconds < each.lengths).any() for each in inputs),
        "paths.model",
        f"{model.source} has one sentence type (type_vocab_size), but this task has pairs of texts; give another model",
    )


def check_batches(config: FinetuneConfig, num_samples: int, world_size: int) -> None:
    """Raise InputError if a batch of an epoch of `num_samples` samples has fewer samples than there are processes."""
    least = num_samples // epoch_steps(num_samples, config.optimizer.batch_size)
    require(
        world_size <= least,
        "optimizer.batch_size",
        f"{world_size} processes, but only {counted(least, 'sample')} in a batch; use fewer processes",
    )


def selection_metric(
    config: FinetuneConfig, kind: Kind[Any, Any], dev: Sequence[SplitData], final: Sequence[SplitData]
) -> str:
    """Return the name of the score that chooses the best evaluation, on the first of the `dev` splits.

    Raises InputError if the metric has no such score, or if it cannot score one of the splits.
    """
    metric, score = METRICS[kind.task.metric], config.evaluation.metric
    missing = f"{kind.task.name} has no labelled dev split here; leave it out, or give null"
    require(bool(dev) or score is None, "evaluation.metric", missing)
    require(bool(dev) or config.evaluation.patience is None, "evaluation.patience", missing)
    score = score or metric.main
    # The data may decide which scores there are, and whether the metric fits.
    known = [scores_of_last_class(kind, split) for split in (*dev, *final)]
    # Counts and thresholds are no scores.
    of_dev = known[0] if dev else {score: 0.0}
    names = [name for name, value in of_dev.items() if isinstance(value, float) and not name.endswith("_thresh")]
    require(
        score in names, "evaluation.metric", f"{score!r} is none of the scores of {metric.name}: {', '.join(names)}"
    )
    return score


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


def scores_of_last_class(kind: Kind[Any, Any], split: SplitData) -> Scores:
    """Return the scores that the metric gives a split if the network always chooses the last class.

    For tagging this is the tag O, so that the only types of entities with scores are those of the gold values.

    Raises InputError that names the files if the metric does not fit them.
    """
    scores: Float32s = np.zeros((split.features.num_units, kind.width), np.float32)
    scores[:, -1] = 1
    with located(f"{', '.join(map(str, split.report.files))}: the metric {kind.task.metric} does not fit"):
        return kind.evaluate(kind.decode(scores, split.features, split.examples))
