"""What a step sends between processes, what a checkpoint takes on disk, and which checkpoints exist when."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from ernie_gram.distributed.buckets import plan_buckets
from ernie_gram.planning.parameters import count_parameters, parameter_shapes
from ernie_gram.planning.sizes import CorpusSizes
from ernie_gram.pretraining.config import PretrainConfig

FLOAT = 4
# Per parameter: its values and the two moments of Adam, all float32.
CHECKPOINT_COPIES = 3


@dataclass(frozen=True)
class Exchange:
    """The sums over processes in one step.

    Attributes:
        bytes: of all tensors that are summed, on one process.
        sums: number of exchanges.
    """

    bytes: int
    sums: int

    def seconds(self, ranks: int, bandwidth: float) -> float:
        """Return the time of the exchanges with a ring of `ranks` processes.

        `bandwidth` is what one process sends per second, in bytes. In a ring, every process sends 2 (ranks - 1) / ranks
        times the bytes of the tensor.
        """
        return 2 * (ranks - 1) / ranks * self.bytes / bandwidth


def step_exchange(config: PretrainConfig, sizes: CorpusSizes, ranks: int) -> Exchange:
    """Return what a step exchanges (see collectives.sum_over_ranks and program.build_training)."""
    if ranks == 1:
        return Exchange(0, 0)
    terms = count_terms(config)
    # The losses travel with the first gradients. Each exchange has a number that fixes its order.
    numbers = [1 + terms, *(prod(shape) for shape in parameter_shapes(config, sizes).values())]
    buckets = len(plan_buckets(numbers))
    return Exchange(FLOAT * (terms + 1 + sum(numbers) + buckets), 1 + buckets)


def count_terms(config: PretrainConfig) -> int:
    """Return the number of terms of the objective."""
    objective = config.objective
    weights = (objective.coarse_weight, objective.fine_weight, objective.generator_weight, objective.rtd_weight)
    return sum(weight > 0 for weight in weights)


def checkpoint_bytes(config: PretrainConfig, sizes: CorpusSizes) -> int:
    """Return the size of a checkpoint, except for names and settings: some hundred bytes per parameter."""
    return CHECKPOINT_COPIES * FLOAT * count_parameters(parameter_shapes(config, sizes))


def checkpoint_steps(config: PretrainConfig) -> Iterator[int]:
    """Yield the steps after which a checkpoint is written, in order."""
    trainer = config.trainer
    yield from range(trainer.save_every, trainer.max_steps, trainer.save_every)
    yield trainer.max_steps


def checkpoints_on_disk(config: PretrainConfig) -> int:
    """Return the largest number of checkpoints at any time: a new one is written before the oldest is removed."""
    trainer = config.trainer
    return min(trainer.keep_checkpoints + 1, -(-trainer.max_steps // trainer.save_every))
