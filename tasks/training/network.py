"""The network of a task: encoder, head and losses; programs that compute scores with it; its fine-tuning as a job.

Shape letters: U units of a batch, N slots of all its inputs, H hidden, W width of the scores.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
import paddle
from paddle import nn

from ernie_gram.distributed.collectives import sum_array
from ernie_gram.distributed.device import World
from ernie_gram.formats.heads import TASK_PREFIX
from ernie_gram.formats.parameters import HEAD_TRANSFORM
from ernie_gram.inference.forward import Forward
from ernie_gram.model import parameters
from ernie_gram.model.config import ModelConfig
from ernie_gram.model.encoder import Encoder
from ernie_gram.run.termination import until_requested
from ernie_gram.training.job import Feeds, Job, LossTerm, StartValues
from ernie_gram.training.optimization import learning_rate
from ernie_gram.training.program import Program, open_program
from reader.batches.fields import INPUT_IDS, LENGTHS, SENTENCE_IDS, Batch, Field
from reader.batches.sampler import accumulation_steps
from reader.system.arrays import Float32s, Int64s
from reader.system.processes import prefetched
from reader.system.progress import progress
from tasks.kinds.base import Kind, Predictions
from tasks.kinds.features import Features
from tasks.kinds.networks import KindHead
from tasks.metrics.catalog import METRICS
from tasks.metrics.labels_and_scores import Scores
from tasks.training.data import SplitData, evaluation_batches, micro_batches, rank_batches
from tasks.training.finetuned import LoadedModel
from tasks.training.prepare import Finetuning

SCORES = "scores"


def head_class(kind: Kind[Any, Any]) -> Any:
    """Return the class of the layers above the encoder (see Kind.head)."""
    module, _, name = kind.head.rpartition(".")
    return getattr(import_module(module), name)


class TaskModel(nn.Layer):
    """The encoder and the head of a kind."""

    def __init__(self, network: TaskNetwork) -> None:
        super().__init__()
        kind, config = network.kind, network.config
        assert config.vocab_size is not None
        self.encoder = Encoder(parameters.encoder(config, config.vocab_size), config)
        self.head: KindHead = head_class(kind)(kind, config, network.has_lm_transform)

    def forward(self, feeds: Feeds) -> paddle.Tensor:
        """Return the scores of the head (see Kind.head)."""
        inputs = feeds[INPUT_IDS.name], feeds[LENGTHS.name], feeds[SENTENCE_IDS.name]
        hidden, _ = self.encoder(*inputs, wanted_M=self.head.slots(feeds))
        return self.head(hidden, feeds)


@dataclass(frozen=True)
class TaskNetwork:
    """The Network of a fine-tuning Job (see training/job.py).

    Attributes:
        config: the shape of the encoder, with the rows of its token embedding; its dropout rates apply to the encoder.
        has_lm_transform: whether the start model has `mask_lm_trans_fc` (see HeadSettings.lm_transform).
    """

    kind: Kind[Any, Any]
    config: ModelConfig
    has_lm_transform: bool

    @classmethod
    def of(cls, kind: Kind[Any, Any], config: ModelConfig, parameters: Mapping[str, Any]) -> TaskNetwork:
        """Return the network of a kind over a model with these parameters."""
        config = replace(config, vocab_size=len(parameters["word_embedding"]))
        return cls(kind, config, HEAD_TRANSFORM[0] in parameters)

    @property
    def fields(self) -> tuple[Field, ...]:
        """The batch fields that training reads."""
        return self.kind.training_fields

    def losses(self, feeds: Feeds) -> list[LossTerm]:
        """Build the network with dropout, and the losses of the kind."""
        model = TaskModel(self)
        model.train()
        # Losses are float32, whatever the precision of the network.
        scores = model(feeds).astype("float32")
        terms: list[LossTerm] = model.head.losses(scores, feeds)
        return terms

    def scores(self, feeds: Feeds) -> paddle.Tensor:
        """Build the network without dropout; return the scores of the units of a batch, float32 [U, W]."""
        model = TaskModel(self)
        model.eval()
        return model(feeds).astype("float32")


def build_prediction(network: TaskNetwork, precision: str = "float32", portable: bool = False) -> Program:
    """Build a program over the same parameters that fetches `scores`, float32 [U, W], of the units of a batch.

    The rows are those of Features.unit_rows.
    """
    with open_program(network.kind.input_fields, precision, portable) as opened:
        return opened.finish({SCORES: network.scores(opened.feeds)})


@dataclass(frozen=True)
class Scorer:
    """Computes the scores of a task, in static mode.

    Attributes:
        run: returns the scores of the units of a batch as SCORES, whatever computes them.
    """

    kind: Kind[Any, Any]
    run: Callable[[Batch], Mapping[str, Any]]
    executor: paddle.static.Executor
    world: World

    def scores(self, features: Features, batch_size: int) -> Float32s:
        """Return the scores of all units of some features, float32 [U, width], on every rank.

        Each rank computes whole batches. They, and thus the scores, do not depend on the number of ranks.
        """
        scores = np.zeros((features.num_units, self.kind.width), np.float32)
        batches = evaluation_batches(features.lengths, batch_size)[self.world.rank :: self.world.size]
        with progress("predicting", sum(map(len, batches)), " samples") as bar:
            for samples in until_requested(batches):
                scores[features.unit_rows(samples)] = self.run(features.batch(samples))[SCORES]
                bar.update(len(samples))
        # The rows of other ranks are 0.
        return sum_array(self.executor, scores, self.world)

    def predict(self, splits: Sequence[SplitData], batch_size: int) -> Iterator[tuple[SplitData, Predictions]]:
        """Yield each split with its predictions, on every rank.

        A threshold for "no answer" that is not set is chosen on the first split, and used on all of them.
        """
        kind = self.kind
        for split in splits:
            predictions = kind.decode(self.scores(split.features, batch_size), split.features, split.examples)
            kind = type(kind)(kind.task, kind.settings.with_null_threshold(predictions.options.get("threshold")))
            yield split, predictions


def trained_scorer(network: TaskNetwork, precision: str, executor: paddle.static.Executor, world: World) -> Scorer:
    """Return the scorer of a network with the parameters of the current scope."""
    return Scorer(network.kind, partial(build_prediction(network, precision).run, executor), executor, world)


def loaded_scorer(finetuned: LoadedModel, world: World) -> Scorer:
    """Return the scorer of a fine-tuned model; raises InputError if the parameters do not fit the settings."""
    kind, model = finetuned.kind, finetuned.model
    network = TaskNetwork.of(kind, model.config, model.parameters)
    forward = Forward(
        lambda _, precision: build_prediction(network, precision),
        *(model.parameters, str(model.source), finetuned.precision),
    )
    forward.prepare([SCORES])
    return Scorer(kind, partial(forward.run, names=[SCORES]), paddle.static.Executor(world.place), world)


# Makes the scorer of a training, once.
ScorerOf = Callable[[paddle.static.Executor, World], Scorer]
# The metric of the loop that chooses the best evaluation.
SCORE = "score"
# Scores of a split in the log and on the console; result.json has all of them.
MAX_SHOWN = 4
EMBEDDING_PARTS = ("_embedding", "pre_encoder_layer_norm", "emb_hidden_mapping")
LAYER_NAME = re.compile(r"encoder_layer_(\d+)_")


def finetuning_job(run: Finetuning, network: TaskNetwork, scorer: ScorerOf) -> Job:
    """Return the job of a checked run."""
    config, model = run.config, run.encoder
    settings, metric = config.optimizer.for_steps(run.max_steps), METRICS[run.task.metric]

    def batches(consumed: int, world: World) -> Generator[list[Batch], None, None]:
        features, size, pool = run.train.features, config.optimizer.batch_size, config.optimizer.length_pool
        shares = rank_batches(features.lengths, size, pool, config.seed, consumed // size, world.rank, world.size)
        steps = accumulation_steps(size, world.size, config.trainer.micro_batch)

        def made(samples: Int64s) -> list[Batch]:
            return [features.batch(part) for part in micro_batches(features.lengths, samples, steps)]

        with closing(prefetched(made, shares, config.trainer.workers)) as steps_of_rank:
            yield from steps_of_rank

    def evaluator(executor: paddle.static.Executor, world: World) -> Scores:
        return evaluate(scorer(executor, world), run.dev, config.evaluation.batch_size)

    selects = bool(run.dev) and config.evaluation.choose == "best"
    return Job(
        folder=run.output,
        seed=config.seed,
        identity=run.identity,
        config=asdict(config) | {"model": asdict(model)},
        network=network,
        batch_size=config.optimizer.batch_size,
        batches=batches,
        evaluator=evaluator if run.dev else None,
        # Before the first step, the output layer is random.
        evaluates_start=False,
        selection=SCORE if selects else None,
        metrics_explained=f"score is {metric.main} ({metric.unit}) on {run.dev[0].name}" if run.dev else "",
        start_values=start_values(run),
        learning_rate=partial(learning_rate, settings=settings, decay_steps=run.max_steps),
        rate_scale=partial(rate_scale, num_layers=model.num_hidden_layers, decay=config.optimizer.layer_decay),
        optimizer=settings,
        trainer=config.trainer.for_steps(run.max_steps, run.epoch_steps, config.evaluation.every),
        resume_from=run.resume_from,
        row_counts=lambda batch: [len(batch[run.kind.training_fields[-1].name])],
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


def evaluate(scorer: Scorer, splits: Sequence[SplitData], batch_size: int) -> Scores:
    """Return the headline scores of some splits: the main one of the first as "score", the others as SPLIT_METRIC."""
    scores, main = Scores(), METRICS[scorer.kind.task.metric].main
    for split, predictions in scorer.predict(splits, batch_size):
        found = headline(scorer.kind.evaluate(predictions), main)
        scores |= {f"{split.name}_{name}": value for name, value in found.items()}
    return {SCORE: scores.pop(f"{splits[0].name}_{main}"), **scores}


def headline(scores: Scores, main: str) -> Scores:
    """Return the main score of a split and the next few scores that are no counts."""
    others = [name for name, value in scores.items() if name != main and not isinstance(value, int)]
    return {name: float(scores[name]) for name in (main, *others[: MAX_SHOWN - 1])}
