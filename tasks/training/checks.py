"""Checks of settings against the model, the data and the metric. Nothing here imports Paddle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ernie_gram.config.checks import require
from ernie_gram.formats.model import Model
from reader.errors import InputError
from reader.plurals import counted
from tasks.data.batches import epoch_steps
from tasks.kinds.base import Float32s, Kind
from tasks.metrics.catalog import METRICS
from tasks.metrics.metric import Figures
from tasks.training.config import FinetuneConfig
from tasks.training.splits import SplitData


def check_model(config: FinetuneConfig, model: Model) -> None:
    """Raise InputError unless a model can be fine-tuned with these settings."""
    require(model.vocabulary is not None, "paths.model", f"{model.source} has no vocabulary; put its vocab.txt there")
    positions = len(model.parameters["pos_embedding"])
    require(
        config.input.max_seq_len <= positions,
        "input.max_seq_len",
        f"{config.input.max_seq_len} exceeds the {positions} positions of {model.source}; give --input.max_seq_len "
        f"{positions}",
    )


def check_batches(config: FinetuneConfig, num_samples: int, world_size: int) -> None:
    """Raise InputError if a batch of an epoch of `num_samples` samples has fewer samples than there are processes."""
    least = num_samples // epoch_steps(num_samples, config.optimizer.batch_size)
    require(
        world_size <= least,
        "optimizer.batch_size",
        f"{world_size} processes, but only {counted(least, 'sample')} in a batch; use fewer processes",
    )


def choosing_figure(
    config: FinetuneConfig, kind: Kind[Any, Any], dev: Sequence[SplitData], final: Sequence[SplitData]
) -> str:
    """Return the name of the figure that chooses the best evaluation, on the first of the `dev` splits.

    Raises InputError if the metric has no such figure, or if it cannot score one of the splits.
    """
    metric, figure = METRICS[kind.task.metric], config.evaluation.metric
    missing = f"{kind.task.name} has no labelled dev split here; leave it out, or give null"
    require(bool(dev) or figure is None, "evaluation.metric", missing)
    require(bool(dev) or config.evaluation.patience is None, "evaluation.patience", missing)
    figure = figure or metric.main
    # Which figures there are, and whether the metric fits, may depend on the data.
    known = [figures_of_zeros(kind, split) for split in (*dev, *final)]
    names = [*known[0]] if dev else [figure]
    require(
        figure in names, "evaluation.metric", f"{figure!r} is none of the figures of {metric.name}: {', '.join(names)}"
    )
    return figure


def figures_of_zeros(kind: Kind[Any, Any], split: SplitData) -> Figures:
    """Return the figures of a split if all scores of the network are 0.

    Raises InputError that names the files if the metric does not fit them.
    """
    scores: Float32s = np.zeros((split.features.num_units, kind.width), np.float32)
    try:
        return kind.figures(kind.decode(scores, split.features, split.examples), split.examples)
    except InputError as error:
        files = ", ".join(map(str, split.report.files))
        raise InputError(f"{files}: the metric {kind.task.metric} does not fit: {error}") from error
