"""Micro-batches: how the rows of a batch are divided, and that the feeder gives the rows of whole batches."""

from __future__ import annotations

from itertools import chain, islice

import numpy as np
import pytest

from reader.batches.feeder import Feeder, Masking
from reader.batches.fields import Batch
from reader.batches.sampler import accumulation_steps, largest_micro_batch, micro_batch_rows, rank_share, sample_indices
from reader.corpus.memmap import Corpus


@pytest.mark.parametrize("micro_batch", [1, 2, 3, 5, 24, 79, 80, 81, 5112])
@pytest.mark.parametrize(("batch_size", "world"), [(1, 1), (3, 2), (15, 2), (7, 7), (80, 64), (5112, 64)])
def test_micro_batches_divide_the_share_of_every_rank(batch_size: int, world: int, micro_batch: int) -> None:
    steps = accumulation_steps(batch_size, world, micro_batch)
    largest = largest_micro_batch(batch_size, world, micro_batch)
    assert largest <= micro_batch
    sizes, rows = list[int](), list[int]()
    for rank in range(world):
        parts = micro_batch_rows(batch_size, rank, world, steps)
        rows += chain.from_iterable(range(*part) for part in parts)
        assert 1 <= len(parts) <= steps
        assert parts[-1][1] - parts[0][0] in (batch_size // world, -(-batch_size // world))
        sizes += [end - start for start, end in parts]
    assert rows == list(range(batch_size))
    assert max(sizes) == largest
    assert min(sizes) >= largest - 2  # shares differ by one, and so do their parts
    assert steps == 1 or (steps - 1) * micro_batch < -(-batch_size // world)


def test_without_a_limit_a_share_is_one_micro_batch() -> None:
    assert accumulation_steps(5112, 64, None) == 1
    assert largest_micro_batch(5112, 64, None) == 80
    assert micro_batch_rows(5112, 1, 64, 1) == [rank_share(5112, 1, 64)]


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


@pytest.mark.parametrize(("world", "micro_batch"), [(1, 8), (2, 3), (4, 1)])
def test_micro_batches_of_all_ranks_hold_the_rows_of_the_whole_batch(
    corpus: Corpus, world: int, micro_batch: int
) -> None:
    feeder = Feeder(corpus, 32, Masking(True, 0.15, 1, queries=True))
    size, start = 15, 30
    steps = accumulation_steps(size, world, micro_batch)
    found: list[list[object]] = [[], []]
    for rank in range(world):
        batches = feeder.training_batches(start, size, rank, world, 2, steps)
        for rows, micro_batches in zip(found, islice(batches, 2), strict=True):
            rows += chain.from_iterable(map(rows_of, micro_batches))
        batches.close()
    firsts = (start, start + size)
    assert found == [rows_of(feeder.batch(*sample_indices(a, a + size, len(feeder), 1))) for a in firsts]
