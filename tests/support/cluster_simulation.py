"""A run on many processes, simulated in one: which rows each process reads, and what it sends, in which order."""

from __future__ import annotations

from dataclasses import dataclass
from unittest.mock import patch

import numpy as np

from ernie_gram.pretraining.config import PretrainConfig
from ernie_gram.pretraining.sizes import CorpusSizes
from ernie_gram.pretraining.terms.catalog import sparse_parameters
from reader.batches.feeder import Feeder
from reader.batches.fields import Batch
from reader.batches.sampler import rank_share, sample_indices

FLOAT = 4
# Per sequence: its tokens, the slots it predicts with their labels, and its query rows.
Row = tuple[bytes, ...]


def rows_of(batch: Batch) -> list[Row]:
    """Return what each sequence of a batch contains, without padding, which depends on the other sequences."""
    width = batch["input_ids"].shape[1]
    owners = batch["slots"] // width
    rows: list[Row] = []
    fine = np.zeros(len(batch["input_ids"]), np.int64)
    if "query_slots" in batch:
        fine = np.bincount(batch["fine_rows"] // batch["query_slots"].shape[1], minlength=len(fine))
    ends = np.cumsum(fine)
    for b, length in enumerate(batch["lengths"]):
        chosen = owners == b
        parts = [batch["input_ids"][b, :length], batch["slots"][chosen] - b * width, batch["coarse_labels"][chosen]]
        if "query_slots" in batch:
            parts += [batch[name][b, : fine[b]] for name in ("query_slots", "query_ranks")]
            parts.append(batch["fine_labels"][ends[b] - fine[b] : ends[b]])
        rows.append(tuple(np.ascontiguousarray(part).tobytes() for part in parts))
    return rows


def global_batch(feeder: Feeder, consumed: int, batch_size: int, ranks: int) -> list[Row]:
    """Return the rows of a whole batch, as `ranks` processes read them, in the order of the processes.

    A process without a row reads nothing.
    """
    rows: list[Row] = []
    for rank in range(ranks):
        first, last = rank_share(batch_size, rank, ranks)
        indices, epochs = sample_indices(consumed + first, consumed + last, len(feeder), feeder.masking.seed)
        rows += rows_of(feeder.batch(indices, epochs)) if last > first else []
    return rows


@dataclass(frozen=True)
class Exchanged:
    """The exchanges of a process in a step, in order: numbers in each.

    Exchanges whose size depends on the batch are missing in `numbers`; `by_row` is how many there are.
    """

    numbers: tuple[int, ...]
    by_row: int

    @property
    def bytes(self) -> int:
        """Bytes of the exchanges in `numbers`."""
        return FLOAT * sum(self.numbers)


def exchanges_of(config: PretrainConfig, sizes: CorpusSizes, rank: int, ranks: int) -> Exchanged:
    """Return what a process sums over all processes, taken from the program that it would run."""
    # Imported late: they load Paddle.
    from ernie_gram.distributed import collectives
    from ernie_gram.distributed.world import World
    from ernie_gram.pretraining.job import PretrainNetwork
    from ernie_gram.training.program import build_training
    from tests.support.static_programs import fresh_scope

    shapes: list[list[int]] = []
    with (
        fresh_scope() as executor,
        patch.object(collectives.dist, "all_reduce", lambda tensor: shapes.append(tensor.shape)),
    ):
        network, world = PretrainNetwork(config, sizes, ranks), World(rank, ranks, executor.place)
        build_training(network, config.optimizer, world, sparse_parameters=sparse_parameters(config))
    known = tuple(int(np.prod(shape)) for shape in shapes if -1 not in shape)
    return Exchanged(known, len(shapes) - len(known))
