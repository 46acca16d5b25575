"""A fine-tuning as a job of the training loop: network, batches, learning rates, start values and evaluation."""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import asdict
from functools import partial
from pathlib import Path

import paddle

from ernie_gram.distributed.device import World
from ernie_gram.formats.heads import TASK_PREFIX
from ernie_gram.formats.parameters import HEAD_TRANSFORM
from ernie_gram.training.job import Job, StartValues
from ernie_gram.training.optimization import learning_rate
from ernie_gram.training.selection import Selection
from reader.batches.fields import Batch
from reader.batches.sampler import accumulation_steps
from reader.system.atomic_files import write_atomically
from tasks.files.submissions import form_of
from tasks.kinds.base import Predictions
from tasks.metrics.catalog import METRICS
from tasks.metrics.labels_and_scores import Scores
from tasks.training.batches import rank_batches, training_batches
from tasks.training.data import SplitData
from tasks.training.network import Predictor, TaskNetwork
from tasks.training.prepare import PREDICTIONS, Finetuning

# The metric of the loop that chooses the best evaluation.
SCORE = "score"
# Scores of a split in the log and on the console; result.json has all of them.
MAX_SHOWN = 4
EMBEDDING_PARTS = ("_embedding", "pre_encoder_layer_norm", "emb_hidden_mapping")
LAYER_NAME = re.compile(r"encoder_layer_(\d+)_")


def network_of(run: Finetuning) -> TaskNetwork:
    """Return the network of a run."""
    config, parameters = run.encoder, run.model.parameters
    return TaskNetwork(run.kind, config, len(parameters["word_embedding"]), HEAD_TRANSFORM[0] in parameters)


def finetuning_job(run: Finetuning, network: TaskNetwork, predictor: Predictor) -> Job:
    """Return the job of a checked run."""
    config, model = run.config, run.encoder
    settings = config.optimizer.for_steps(run.max_steps)
    metric = METRICS[run.task.metric]

    def batches(consumed: int, world: World) -> Generator[list[Batch], None, None]:
        features, size, pool = run.train.features, config.optimizer.batch_size, config.optimizer.length_pool
        shares = rank_batches(features.lengths, size, pool, config.seed, consumed // size, world.rank, world.size)
        steps = accumulation_steps(size, world.size, config.trainer.micro_batch)
        with closing(training_batches(features, shares, steps, config.trainer.workers)) as prefetched:
            yield from prefetched

    selects = bool(run.dev) and config.evaluation.choose == "best"
    unit = "" if metric.unit == "none" else f" ({metric.unit})"
    return Job(
        folder=run.output,
        seed=config.seed,
        identity=run.identity,
        config=asdict(config) | {"model": asdict(model)},
        network=network,
        batch_size=config.optimizer.batch_size,
        batches=batches,
        evaluators=(partial(evaluate, predictor, run.dev, run.metric),) if run.dev else (),
        # Before the first step, the output layer is random.
        evaluates_start=False,
        selection=Selection(SCORE, metric.direction, config.evaluation.patience) if selects else None,
        metrics_explained=f"score is {run.metric}{unit} on {run.dev[0].name}" if run.dev else "",
        start_values=(start_values(run),),
        learning_rate=partial(learning_rate, settings=settings, decay_steps=run.max_steps),
        rate_scale=partial(rate_scale, num_layers=model.num_hidden_layers, decay=config.optimizer.layer_decay),
        optimizer=settings,
        trainer=config.trainer.for_steps(run.max_steps, run.epoch_steps, config.evaluation.every),
        resume_from=run.resume_from,
        row_counts=run.kind.row_counts,
        evaluated={split.name: split.digest for split in run.final},
    )


def start_values(run: Finetuning) -> StartValues:
    """Return the parameters of the given model.

    The output layer is drawn even if the model was fine-tuned before: its classes may be those of another task.
    """
    arrays = {name: values for name, values in run.model.parameters.items() if not name.startswith(TASK_PREFIX)}
    return StartValues(str(run.model.source), lambda: arrays, is_model=True)


def rate_scale(name: str, num_layers: int, decay: float) -> float:
    """Return the factor of a parameter's learning rate (paper, appendix B).

    It is decay^(L - i) for layer i of 0..L - 1, decay^(L + 1) for embeddings, the table of relative positions included,
    and 1 for the layers above the encoder.
    """
    layer = LAYER_NAME.match(name)
    if layer:
        return decay ** (num_layers - int(layer[1]))
    is_embedding = any(part in name for part in EMBEDDING_PARTS)
    return decay ** (num_layers + 1) if is_embedding else 1.0


def evaluate(
    predictor: Predictor, splits: Sequence[SplitData], metric: str, executor: paddle.static.Executor, world: World
) -> Scores:
    """Return the headline scores of some splits: `metric` of the first one as "score", the others as SPLIT_METRIC."""
    scores: Scores = {}
    for split, predictions in predictor.predict(executor, splits, world):
        main = METRICS[predictions.task.metric].main
        found = headline(predictor.kind.evaluate(predictions), metric, main)
        scores |= {f"{split.name}_{name}": value for name, value in found.items()}
    return {SCORE: scores.pop(f"{splits[0].name}_{metric}"), **scores}


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
