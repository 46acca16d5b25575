"""Predict the bytes that a step exchanges between processes, and the size and number of checkpoints."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from ernie_gram.distributed.buckets import is_summed_by_row, plan_buckets
from ernie_gram.model.parameters import Shapes, count
from ernie_gram.pretraining.config import PretrainConfig
from ernie_gram.pretraining.network import parameter_shapes
from ernie_gram.pretraining.sizes import BatchShape, CorpusSizes
from ernie_gram.pretraining.terms.catalog import sparse_parameters, terms_of

FLOAT = 4
# Per parameter: its values and the two moments of Adam, all float32.
CHECKPOINT_COPIES = 3


@dataclass(frozen=True)
class Exchange:
    """The sums over processes in one step.

    Attributes:
        bytes: of all tensors that are summed, on one process.
        sums: number of exchanges.
        rows: expected number of rows of the tables that are exchanged by row.
    """

    bytes: int
    sums: int
    rows: float = 0.0

    def sent(self, ranks: int) -> float:
        """Return the bytes that one process sends: in a ring, 2 (ranks - 1) / ranks times those of the tensors."""
        return 2 * (ranks - 1) / ranks * self.bytes


def step_exchange(config: PretrainConfig, sizes: CorpusSizes, shape: BatchShape, ranks: int) -> Exchange:
    """Return what a step exchanges (see row_exchange.sum_gradients and program.build_training)."""
    if ranks == 1:
        return Exchange(0, 0)
    terms = len(terms_of(config.objective))
    shapes = parameter_shapes(config, sizes)
    tables = tables_by_row(config, shapes)
    # The losses are in the first bucket, the counts of used rows in the last. Each exchange has one more number, which
    # fixes its order (see sum_over_ranks).
    numbers = [1 + terms, *(prod(each) for name, each in shapes.items() if name not in tables)]
    numbers += [rows for rows, _ in tables.values()]
    buckets = len(plan_buckets(numbers))
    used = used_rows(config, sizes, shape)
    by_row = sum(round(used) * width + 1 for _, width in tables.values())
    total = terms + 1 + sum(numbers) + buckets + by_row
    return Exchange(FLOAT * total, 1 + buckets + len(tables), used if tables else 0.0)


def tables_by_row(config: PretrainConfig, shapes: Shapes) -> Shapes:
    """Return the shapes of the tables whose gradients are exchanged by row."""
    sparse = sparse_parameters(config)
    return {name: shape for name, shape in shapes.items() if name in sparse and is_summed_by_row(prod(shape))}


def used_rows(config: PretrainConfig, sizes: CorpusSizes, shape: BatchShape) -> float:
    """Return the expected number of rows of the n-gram embedding that a whole batch uses: a sample per masked slot."""
    return sizes.expected_ngrams(shape.predicted * config.data.batch_size)


def checkpoint_bytes(config: PretrainConfig, sizes: CorpusSizes) -> int:
    """Return the size of a checkpoint, except for names and settings: some hundred bytes per parameter."""
    return CHECKPOINT_COPIES * FLOAT * count(parameter_shapes(config, sizes))


def checkpoints_on_disk(config: PretrainConfig) -> int:
    """Return the largest number of checkpoints at any time: a new one is written before the oldest is removed."""
    trainer = config.trainer
    return min(trainer.keep_checkpoints + 1, -(-trainer.max_steps // trainer.save_every))
