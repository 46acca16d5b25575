"""Masks and batches equal a simple reference, and depend only on the seed, the epoch and the sequence index."""

from __future__ import annotations

import math
from collections import Counter
from contextlib import closing
from itertools import chain, islice

import numpy as np
import pytest

from reader.batches import fields
from reader.batches.feeder import Feeder, Masking
from reader.batches.fields import FIELDS, Batch
from reader.batches.masking import choose_units, num_masked
from reader.batches.sampler import (
    accumulation_steps,
    largest_micro_batch,
    micro_batch_rows,
    permute,
    sample_indices,
    unit_keys,
)
from reader.corpus.memmap import Corpus
from tests.reader.corpus.test_units import tokens_of


def reference_masks(feeder: Feeder, index: int, epoch: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the units of a sequence, and which of them are masked; made unit by unit from their keys."""
    corpus, limits = feeder.corpus, feeder.limits
    first = int(feeder.starts[index])
    end = min(boundary for boundary in feeder.documents.tolist() if boundary > first)
    keys = unit_keys(min(end - first, limits.max_tokens), feeder.masking.seed, epoch, index)
    num_units = num_tokens = num_slots = 0
    for unit, key in zip(corpus.units[first:end], keys, strict=False):
        tokens = len(tokens_of(corpus, np.array([unit])))
        num_tokens += tokens
        num_slots += 1 if key < limits.reserve else tokens
        if num_tokens > limits.max_tokens or (num_slots > limits.max_slots and num_units):
            break
        num_units += 1
    masked = np.argsort(keys[:num_units])[: max(1, math.floor(feeder.masking.fraction * num_units + 0.5))]
    return corpus.units[first : first + num_units], np.isin(np.arange(num_units), masked)


def reference_batch(feeder: Feeder, indices: np.ndarray, epochs: np.ndarray) -> Batch:
    """Return the batch of sections 3.1 to 3.3, made unit by unit; it shares only `unit_keys` with tested code."""
    corpus, masking, special_ids = feeder.corpus, feeder.masking, feeder.special_ids
    rows: list[list[int]] = []
    predicted: list[tuple[int, int, int, int]] = []  # row, slot, label, masked unit
    masked_units: list[int] = []
    for row, (index, epoch) in enumerate(zip(indices, epochs, strict=True)):
        units, chosen = reference_masks(feeder, index, epoch)
        slots = [special_ids.cls]
        for unit, is_masked in zip(units, chosen, strict=True):
            tokens = tokens_of(corpus, np.array([unit]))
            if not is_masked:
                slots += tokens
                continue
            for label in [int(unit)] if masking.explicit else tokens:
                predicted.append((row, len(slots), label, len(masked_units)))
                slots.append(special_ids.mask)
            masked_units.append(int(unit))
        rows.append([*slots, special_ids.sep])
    width = max(map(len, rows))
    labels = fields.COARSE_LABELS if masking.explicit else fields.TOKEN_LABELS
    batch = {
        fields.INPUT_IDS.name: np.array([row + [special_ids.pad] * (width - len(row)) for row in rows]),
        fields.LENGTHS.name: np.array([len(row) for row in rows]),
        fields.SLOTS.name: np.array([row * width + slot for row, slot, _, _ in predicted]),
        labels.name: np.array([label for _, _, label, _ in predicted]),
        fields.SLOT_UNITS.name: np.array([unit for _, _, _, unit in predicted]),
        fields.UNIT_IDS.name: np.array(masked_units),
    }
    if masking.queries:
        queries: list[list[tuple[int, int, int]]] = [[] for _ in rows]  # slot, rank, token
        for row, slot, unit, _ in predicted:
            queries[row] += [(slot, rank, token) for rank, token in enumerate(tokens_of(corpus, np.array([unit])))]
        max_rows = max(map(len, queries))
        padded = np.array([row + [(0, 0, -1)] * (max_rows - len(row)) for row in queries])
        batch[fields.QUERY_SLOTS.name], batch[fields.QUERY_RANKS.name] = padded[..., 0], padded[..., 1]
        batch[fields.FINE_ROWS.name] = np.flatnonzero(padded[..., 2] >= 0)
        batch[fields.FINE_LABELS.name] = padded[..., 2][padded[..., 2] >= 0]
    return batch


@pytest.mark.parametrize("pack_documents", [False, True])
@pytest.mark.parametrize(("explicit", "queries"), [(True, False), (True, True), (False, False)])
def test_batches_equal_the_reference(corpus: Corpus, explicit: bool, queries: bool, pack_documents: bool) -> None:
    feeder = Feeder(corpus, 32, Masking(explicit, 0.15, 7, queries), pack_documents)
    for start in range(0, 200, 8):
        indices, epochs = np.arange(start, start + 8), np.arange(8) // 3
        batch, expected = feeder.batch(indices, epochs), reference_batch(feeder, indices, epochs)
        assert batch.keys() == expected.keys()
        for name, values in batch.items():
            assert np.array_equal(values, expected[name])
            assert values.dtype == FIELDS[name].dtype
            assert values.ndim == len(FIELDS[name].shape)


def choose(num_units: int, fraction: float, seed: int, epoch: int, index: int, reserve: float = 0) -> np.ndarray:
    """Sample masked units; a fraction `reserve` of the units is reserved."""
    keys = unit_keys(num_units, seed, epoch, index)
    return choose_units(keys, fraction, np.uint64(int(reserve * 2**64)))


def test_masked_units_are_fifteen_percent_equally_likely_and_depend_on_seed_epoch_and_index() -> None:
    for units in range(1, 600):
        assert num_masked(units, 0.15) == max(1, math.floor(0.15 * units + 0.5))
        chosen = choose(units, 0.15, 1, 0, units)
        assert chosen.sum() == num_masked(units, 0.15)
        assert np.array_equal(chosen, choose(units, 0.15, 1, 0, units, reserve=0.2))
    assert num_masked(1, 0.9) == 1
    draws = 20000
    counts = sum(choose(20, 0.15, 5, epoch, 3).astype(int) for epoch in range(draws))
    expected = draws * 3 / 20
    # Chi-square with 19 degrees of freedom exceeds 43.8 with probability 0.001.
    assert ((counts - expected) ** 2 / expected).sum() < 43.8
    pairs = Counter(tuple(np.flatnonzero(choose(5, 0.4, 5, 0, index))) for index in range(10000))
    assert len(pairs) == 10
    assert min(pairs.values()) > 900

    def mask(seed: int, epoch: int, index: int) -> bytes:
        return choose(200, 0.15, seed, epoch, index).tobytes()

    assert mask(1, 2, 3) == mask(1, 2, 3)
    assert len({mask(1, 2, 3), mask(2, 2, 3), mask(1, 3, 3), mask(1, 2, 4), mask(1, 3, 2), mask(2, 1, 3)}) == 6


# Per sequence: its tokens, the slots it predicts with their labels, and its query rows.
Row = tuple[bytes, ...]


def rows_of(batch: Batch) -> list[Row]:
    """Return what each sequence of a batch contains, without padding, which depends on the other sequences."""
    width = batch["input_ids"].shape[1]
    owners = batch["slots"] // width
    rows: list[Row] = []
    fine = np.bincount(batch["fine_rows"] // batch["query_slots"].shape[1], minlength=len(batch["input_ids"]))
    ends = np.cumsum(fine)
    for b, length in enumerate(batch["lengths"]):
        chosen = owners == b
        parts = [batch["input_ids"][b, :length], batch["slots"][chosen] - b * width, batch["coarse_labels"][chosen]]
        parts += [batch[name][b, : fine[b]] for name in ("query_slots", "query_ranks")]
        parts.append(batch["fine_labels"][ends[b] - fine[b] : ends[b]])
        rows.append(tuple(np.ascontiguousarray(part).tobytes() for part in parts))
    return rows


def stream(
    feeder: Feeder, batches: int, size: int, world: int, workers: int, consumed: int = 0, steps: int = 1
) -> list[list[Row]]:
    """Return the rows of the first batches, those of all ranks and micro-batches concatenated in order."""
    joined: list[list[Row]] = [[] for _ in range(batches)]
    for rank in range(world):
        with closing(feeder.training_batches(consumed, size, rank, world, workers, steps)) as made:
            for rows, micro_batches in zip(joined, islice(made, batches), strict=True):
                rows += chain.from_iterable(map(rows_of, micro_batches))
    return joined


def test_batches_do_not_depend_on_workers_ranks_parts_and_resuming_and_errors_of_workers_are_raised(
    corpus: Corpus,
) -> None:
    feeder = Feeder(corpus, 32, Masking(True, 0.15, 3, queries=True))
    alone = stream(feeder, 12, 7, world=1, workers=1)
    starts = range(0, 12 * 7, 7)
    assert alone == [rows_of(feeder.batch(*sample_indices(a, a + 7, len(feeder), 3))) for a in starts]
    assert stream(feeder, 12, 7, world=1, workers=3) == alone
    assert stream(feeder, 12, 7, world=2, workers=2) == alone
    assert stream(feeder, 12, 7, world=7, workers=1) == alone
    assert stream(feeder, 7, 7, world=2, workers=1, consumed=5 * 7) == alone[5:]
    for world, micro_batch in ((1, 5), (2, 3), (4, 1)):
        steps = accumulation_steps(7, world, micro_batch)
        assert stream(feeder, 2, 7, world, workers=2, steps=steps) == alone[:2]
    feeder.starts = feeder.starts[:1]  # a corpus without sequences
    with pytest.raises(ZeroDivisionError):
        next(feeder.training_batches(0, 4, 0, 1, 1))


def test_an_epoch_contains_every_sequence_once_in_a_new_order() -> None:
    for size in (1, 2, 3, 17, 1000, 4097):
        indices, epochs = sample_indices(0, 3 * size, size, seed=9)
        assert epochs.tolist() == [0] * size + [1] * size + [2] * size
        first, second, third = indices.reshape(3, size)
        for epoch in (first, second, third):
            assert sorted(epoch) == list(range(size))
        if size > 10:
            assert not np.array_equal(first, second)
            assert abs(np.corrcoef(first, np.arange(size))[0, 1]) < 4 / size**0.5
            assert not np.array_equal(first, sample_indices(0, size, size, seed=10)[0])
    assert np.array_equal(sample_indices(1500, 1600, 1000, 9)[0], sample_indices(0, 2000, 1000, 9)[0][1500:1600])


@pytest.mark.parametrize("consumed", [2**31 - 3, 2**32 - 3, 500_000 * 5112, 3_000_000 * 512, 2**40])
def test_samples_beyond_32_bits_are_those_of_their_epoch(consumed: int) -> None:
    size = 2_000_003
    indices, epochs = sample_indices(consumed, consumed + 6, size, 7)
    assert epochs.tolist() == [(consumed + i) // size for i in range(6)]
    assert indices.tolist() == [permute((consumed + i) % size, size, 7, (consumed + i) // size) for i in range(6)]
    assert len(set(indices.tolist())) == 6
    assert indices.min() >= 0


def test_held_out_batches_are_spread_over_the_corpus_and_divided_among_ranks(corpus: Corpus) -> None:
    feeder = Feeder(corpus, 32, Masking(True, 0.15, 3))
    indices = feeder.held_out_indices(50)
    assert len(set(indices)) == 50
    gaps = np.diff([*indices, len(feeder)])
    assert indices[0] == 0
    assert gaps.max() - gaps.min() <= 1
    assert feeder.held_out_indices(10**6).tolist() == list(range(len(feeder)))
    whole = [units for batch in feeder.held_out_batches(8, 0, 1, 50) for units in batch["unit_ids"]]
    shared = [u for rank in range(3) for batch in feeder.held_out_batches(4, rank, 3, 50) for u in batch["unit_ids"]]
    assert whole == shared
    expected = [
        unit for index in indices for units, masked in [reference_masks(feeder, index, 0)] for unit in units[masked]
    ]
    assert whole == expected


@pytest.mark.parametrize("micro_batch", [1, 2, 3, 5, 24, 79, 80, 81, 5112, None])
@pytest.mark.parametrize(("batch_size", "world"), [(1, 1), (3, 2), (15, 2), (7, 7), (80, 64), (5112, 64)])
def test_micro_batches_divide_the_share_of_every_rank(batch_size: int, world: int, micro_batch: int | None) -> None:
    steps = accumulation_steps(batch_size, world, micro_batch)
    largest = largest_micro_batch(batch_size, world, micro_batch)
    micro_batch = micro_batch or -(-batch_size // world)  # without a limit, a share is one
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
