"""What the training loop is given: one record, made by pre-training or by a fine-tuning task."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import paddle

from ernie_gram.distributed.world import World
from ernie_gram.run import checkpoint
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


class Evaluator(Protocol):
    """Measures the model in the current scope, for example on held-out data."""

    def __call__(self, executor: paddle.static.Executor, world: World) -> dict[str, float]:
        """Return metrics by name. The evaluator itself combines the results of all ranks."""


@dataclass(frozen=True)
class StartValues:
    """Values for parameters before the first step; parameters that it lacks keep the values that were drawn.

    Attributes:
        source: where the values come from, for messages.
        load: returns the values by parameter name.
        is_model: whether the values are those of a model. Then the console names the parameters that it lacks, and its
            parameters that are not used.
    """

    source: str
    load: Callable[[], Arrays]
    is_model: bool = False

    @classmethod
    def of_checkpoint(cls, path: Path) -> StartValues:
        """The parameters of a checkpoint `step_N`; `load` raises InputError if it is damaged."""

        def load() -> Arrays:
            checkpoint.verify(path)
            return checkpoint.load_model(path)

        return cls(str(path), load, is_model=True)


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
        batches: (consumed samples, world) -> endless batches of this rank. It must be a pure function of its arguments,
            so that a resumed run reads the same batches.
        evaluators: each is called before the first step, every trainer.eval_every steps, and after the last step. Their
            metrics go into one record, so their names must differ.
        metrics_explained: a line for the console before the first evaluation, or "".
        start_values: applied in this order after the parameters were drawn, unless the run resumes.
        learning_rate: step -> learning rate of the update that follows `step` updates.
        rate_scale: parameter name -> factor of its learning rate, for layer-wise decay; None for 1.
        optimizer, trainer: their settings.
        resume_from: a verified checkpoint of this run, or None.
        check_data: called on rank 0 before each checkpoint is written; raises InputError if the data are damaged.
    """

    folder: Path
    seed: int
    identity: dict[str, Any]
    config: dict[str, Any]
    network: Network
    batch_size: int
    batches: Callable[[int, World], Generator[Batch, None, None]]
    learning_rate: Callable[[int], float]
    optimizer: OptimizerConfig
    trainer: TrainerConfig
    evaluators: tuple[Evaluator, ...] = ()
    metrics_explained: str = ""
    start_values: tuple[StartValues, ...] = ()
    rate_scale: Callable[[str], float] | None = None
    resume_from: Path | None = None
    check_data: Callable[[], None] | None = None
