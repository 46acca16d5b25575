"""Predict with a model on any number of processes, and score its predictions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import paddle

from ernie_gram.distributed.collectives import sum_array
from ernie_gram.distributed.device import World
from ernie_gram.run.termination import until_requested
from ernie_gram.training.program import Program
from reader.batches.fields import Batch
from reader.system.arrays import Float32s
from reader.system.atomic_files import write_atomically
from reader.system.progress import progress
from tasks.files.submissions import form_of
from tasks.kinds.base import Kind, Predictions
from tasks.kinds.features import Features
from tasks.metrics.catalog import METRICS
from tasks.metrics.labels_and_scores import Scores
from tasks.training.batches import evaluation_batches
from tasks.training.data import SplitData
from tasks.training.network import SCORES, TaskNetwork, build_prediction
from tasks.training.prepare import PREDICTIONS

# The metric of the loop that chooses the best evaluation.
SCORE = "score"
# Scores of a split in the log and on the console; result.json has all of them.
MAX_SHOWN = 4


def batch_scores(
    executor: paddle.static.Executor,
    run: Callable[[Batch], Mapping[str, Any]],
    features: Features,
    width: int,
    batch_size: int,
    world: World,
) -> Float32s:
    """Return the scores of all units of some features, float32 [U, width], on every rank.

    Each rank computes whole batches. They, and thus the scores, do not depend on the number of ranks.

    Args:
        run: returns the scores of the units of a batch as SCORES, whatever computes them.
        width: see Kind.width.
    """
    scores = np.zeros((features.num_units, width), np.float32)
    batches = evaluation_batches(features.lengths, batch_size)[world.rank :: world.size]
    with progress("predicting", sum(map(len, batches)), " samples") as bar:
        for samples in until_requested(batches):
            scores[features.unit_rows(samples)] = run(features.batch(samples))[SCORES]
            bar.update(len(samples))
    # The rows of other ranks are 0.
    return sum_array(executor, scores, world)


class Predictor:
    """Computes the scores of a network with the parameters of the current scope."""

    def __init__(self, network: TaskNetwork, batch_size: int, precision: str = "float32") -> None:
        self._network, self._batch_size, self._precision = network, batch_size, precision
        self._program: Program | None = None  # built at the first use

    def scores(self, executor: paddle.static.Executor, features: Features, world: World) -> Float32s:
        """Return the scores of all units of some features, see `batch_scores`."""
        program = self._program = self._program or build_prediction(self._network, self._precision)
        run = partial(program.run, executor)
        return batch_scores(executor, run, features, self._network.kind.width, self._batch_size, world)

    def predict(
        self, executor: paddle.static.Executor, splits: Sequence[SplitData], world: World
    ) -> Iterator[tuple[SplitData, Predictions]]:
        """Yield each split with its predictions, on every rank.

        A threshold for "no answer" that is not set is chosen on the first split, and used on all of them.
        """
        kind = self._network.kind
        for split in splits:
            predictions = kind.decode(self.scores(executor, split.features, world), split.features, split.examples)
            kind = kind.with_null_threshold(predictions.null_threshold)
            yield split, predictions


class TaskEvaluator:
    """Scores the dev splits of a task (see training.job.Evaluator)."""

    def __init__(self, kind: Kind[Any, Any], predictor: Predictor, splits: Sequence[SplitData], metric: str) -> None:
        """`metric` on the first split is called "score"; the others are called SPLIT_METRIC."""
        self._kind, self._predictor, self._splits, self._metric = kind, predictor, splits, metric

    def __call__(self, executor: paddle.static.Executor, world: World) -> Scores:
        """Return the headline scores of all splits."""
        metrics: Scores = {}
        main = METRICS[self._kind.task.metric].main
        for split, predictions in self._predictor.predict(executor, self._splits, world):
            scores = headline(self._kind.evaluate(predictions), self._metric, main)
            metrics |= {f"{split.name}_{name}": value for name, value in scores.items()}
        chosen = metrics.pop(f"{self._splits[0].name}_{self._metric}")
        return {SCORE: chosen, **metrics}


def headline(scores: Scores, chosen: str, main: str) -> Scores:
    """Return the chosen score of a split and the next few scores that are no counts.

    A split without the chosen score, such as that of a type of entities, has the metric's main score only.
    """
    if chosen not in scores:
        return {main: float(scores[main])}
    others = [name for name, value in scores.items() if name != chosen and not isinstance(value, int)]
    return {name: float(scores[name]) for name in (chosen, *others[: MAX_SHOWN - 1])}


def write_predictions(folder: Path, split: str, predictions: Predictions) -> Path:
    """Write the predictions for a split in the form of the task's submissions; return the file."""
    form = form_of(predictions.task)
    path = folder / f"{PREDICTIONS}{split}{Path(form.file_name(predictions.task, split)).suffix}"
    write_atomically(path, form.content(predictions))
    return path
