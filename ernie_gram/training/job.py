"""`Job`, the input of the training loop: a record that pre-training or a fine-tuning task makes."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Generator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import paddle

from ernie_gram.distributed.device import World
from ernie_gram.formats.parameters import some_of
from ernie_gram.run.checkpoint import Arrays
from ernie_gram.training.config import OptimizerConfig, TrainerConfig
from reader.batches.fields import Batch, Field

Feeds = dict[str, paddle.Tensor]


@dataclass(frozen=True)
class LossTerm:
    """One term of the objective on this rank's share of a batch. The term counts as total / count over all ranks.

    Attributes:
        name: as logged.
        weight: factor of the term in the objective.
        total: sum of the losses of this rank's rows, float32 scalar.
        count: number of rows, float32 scalar.
    """

    name: str
    weight: float
    total: paddle.Tensor
    count: paddle.Tensor


class Network(Protocol):
    """Builds the model and its losses inside the program that is being built."""

    @property
    def fields(self) -> tuple[Field, ...]:
        """The batch fields that `losses` reads."""

    def losses(self, feeds: Feeds) -> list[LossTerm]:
        """Build the network in training mode. Every parameter needs an explicit name."""


# Measures the model in the current scope, for example on held-out data; returns metrics by name, the same on all ranks.
Evaluator = Callable[[paddle.static.Executor, World], dict[str, float]]


@dataclass(frozen=True)
class StartValues:
    """Values for parameters before the first step; parameters that it lacks keep the values that were drawn.

    Attributes:
        source: where the values come from, for messages.
        load: returns the values by parameter name.
        is_model: whether the values are those of a model. Then the console names the parameters that it lacks, and its
            parameters that are not used (see `describe`).
    """

    source: str
    load: Callable[[], Arrays]
    is_model: bool = False

    def describe(self, provided: Collection[str], names: list[str]) -> list[str]:
        """Return lines for the console that say where every parameter of a model's job comes from.

        Args:
            provided: names of the values.
            names: the parameters of the job.
        """
        if not self.is_model:
            return []
        drawn = [name for name in names if name not in provided]
        others = {
            f"not in {self.source}, drawn": drawn,
            f"in {self.source}, not used": sorted(name for name in provided if name not in names),
        }
        return [
            f"start values: {len(names) - len(drawn)} of {len(names)} parameters from {self.source}",
            *(f"{what}: {some_of(found)}" for what, found in others.items() if found),
        ]


@dataclass(frozen=True)
class Progress:
    """What the evaluations of a run have shown so far; it is part of each checkpoint.

    Attributes:
        step: of the last evaluation that was compared; -1 before the first.
        best_step, best: step and value of the best evaluation; None before the first.
    """

    step: int = -1
    best_step: int | None = None
    best: float | None = None

    def after(self, step: int, value: float) -> Progress:
        """Return the progress after an evaluation; the first of the largest values is the best, NaN below all."""
        is_best = self.best is None or value > self.best or (math.isnan(self.best) and not math.isnan(value))
        return Progress(step, step, value) if is_best else replace(self, step=step)


@dataclass(frozen=True)
class Job:
    """One training: everything the loop in trainer.py needs.

    Attributes:
        folder: for checkpoints and logs.
        seed: of the drawn start values and of every random operation.
        identity: everything that can change the result; stored in each checkpoint (see run_folder.py).
        config: the resolved configuration as nested dicts; stored in each checkpoint.
        network: builds the losses.
        batch_size: samples per step, all ranks together.
        batches: (consumed samples, world) -> without end, the micro-batches of this rank for each step; only one unless
            trainer.micro_batch asks for more (see sampler.micro_batch_rows). It must be a pure function of its
            arguments, so that a resumed run reads the same batches.
        evaluator: called every trainer.eval_every steps, and after the last step; None for no evaluation.
        evaluates_start: whether it is also called before the first step.
        selection: the metric of the evaluator whose largest value chooses the model that is kept in the folder `best`;
            None for no choice.
        metrics_explained: a line for the console at the start, or "".
        start_values: applied after the parameters were drawn, unless the run resumes; None for none.
        learning_rate: step -> learning rate of the update that follows `step` updates.
        rate_scale: parameter name -> factor of its learning rate, for layer-wise decay; None for 1.
        sparse_parameters: names of embeddings that the losses only look up, and of which a step uses few rows. Only
            these rows of their gradients are exchanged between ranks and clipped; the result depends on it only in
            rounding.
        optimizer, trainer: their settings.
        resume_from: a verified checkpoint of this run, or None.
        row_counts: batch -> number of rows of each term of the network's losses.
        check_data: called on rank 0 before a checkpoint is written; raises InputError if the data are damaged.
        evaluated: what the evaluator reads, as values for JSON; all ranks must have the same.
        flops: batch of one process -> floating-point operations of its matrix products in forward and backward pass;
            None if unknown. Then the log has no "mfu".
    """

    folder: Path
    seed: int
    identity: dict[str, Any]
    config: dict[str, Any]
    network: Network
    batch_size: int
    batches: Callable[[int, World], Generator[list[Batch], None, None]]
    learning_rate: Callable[[int], float]
    optimizer: OptimizerConfig
    trainer: TrainerConfig
    row_counts: Callable[[Batch], list[int]]
    evaluator: Evaluator | None = None
    evaluates_start: bool = True
    selection: str | None = None
    metrics_explained: str = ""
    start_values: StartValues | None = None
    rate_scale: Callable[[str], float] | None = None
    sparse_parameters: frozenset[str] = frozenset()
    resume_from: Path | None = None
    check_data: Callable[[], None] | None = None
    evaluated: Mapping[str, Any] = field(default_factory=dict)
    flops: Callable[[Batch], float] | None = None
