"""A fine-tuning as a job of the training loop: its network, its batches, its learning rates and its start values."""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import closing
from dataclasses import asdict
from functools import partial

from ernie_gram.distributed.device import World
from ernie_gram.formats.heads import TASK_PREFIX
from ernie_gram.formats.parameters import HEAD_TRANSFORM
from ernie_gram.training.job import Job, StartValues
from ernie_gram.training.optimization import learning_rate
from ernie_gram.training.selection import Selection
from reader.batches.fields import Batch
from reader.batches.sampler import accumulation_steps
from tasks.metrics.catalog import METRICS
from tasks.training.batches import rank_batches, training_batches
from tasks.training.evaluation import SCORE, Predictor, TaskEvaluator
from tasks.training.network import TaskNetwork
from tasks.training.prepare import Finetuning

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
        evaluators=(TaskEvaluator(run.kind, predictor, run.dev, run.metric),) if run.dev else (),
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
