"""Sequences: what they cover, their limits, and that their lengths do not reveal hidden tokens."""

from __future__ import annotations

import copy
from itertools import pairwise

import numpy as np
import pytest

from reader.batches.feeder import Feeder, Masking
from reader.batches.sequences import SequenceLimits, cut_pieces
from reader.corpus.memmap import Corpus
from reader.errors import InputError


def feeder_of(corpus: Corpus, max_seq_len: int, pack_documents: bool) -> Feeder:
    return Feeder(corpus, max_seq_len, Masking(True, 0.15, 1), pack_documents)


def starts_of(corpus: Corpus, max_tokens: int, pack_documents: bool = False) -> np.ndarray:
    documents = corpus.documents[[0, -1]] if pack_documents else np.asarray(corpus.documents)
    return cut_pieces(np.asarray(corpus.units), documents, corpus.unit_tokens, max_tokens)


def observe(feeder: Feeder, epochs: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the tokens of masked sequences without [CLS] and [SEP], and where they end in the corpus.

    int64 [S] each, in the order of (epoch, sequence); the units of a sequence are those that have its tokens.
    """
    corpus, count, tokens = feeder.corpus, len(feeder), []
    for epoch in range(epochs):
        batch = feeder.batch(np.arange(count), np.full(count, epoch))
        # Of each masked unit, all tokens but one are hidden.
        rows, hidden = batch["slots"] // batch["input_ids"].shape[1], corpus.unit_tokens[batch["unit_ids"]] - 1
        tokens.append(batch["lengths"] - 2 + np.bincount(rows, hidden, count).astype(np.int64))
    before = np.r_[0, np.cumsum(corpus.unit_tokens[corpus.units], dtype=np.int64)]
    last = before[np.tile(feeder.starts[:-1], epochs)] + np.concatenate(tokens)
    ends = np.searchsorted(before, last)
    assert np.array_equal(before[ends], last)
    return np.concatenate(tokens), ends


@pytest.mark.parametrize(
    ("max_seq_len", "pack_documents"), [(64, True), (64, False), (512, True), (512, False), (12, False)]
)
def test_sequences_cover_the_corpus_within_limits(corpus: Corpus, max_seq_len: int, pack_documents: bool) -> None:
    feeder = feeder_of(corpus, max_seq_len, pack_documents)
    tokens, ends = observe(feeder, 20)
    firsts = np.tile(feeder.starts[:-1], 20)
    assert (ends - firsts).min() >= 1
    assert tokens.max() <= max_seq_len - 2
    # No sequence continues into the next document, unless documents are packed.
    boundaries = corpus.documents[[0, -1]] if pack_documents else np.asarray(corpus.documents)
    assert (ends <= boundaries[np.searchsorted(boundaries, firsts, "right")]).all()
    # Every epoch contains all units, and few of them twice.
    gaps = firsts[1:] - ends[:-1]
    assert gaps[firsts[1:] > 0].max() <= 0
    assert (ends[len(feeder) - 1 :: len(feeder)] == corpus.info.units).all()
    # The next start is where no further unit fits.
    sizes = corpus.unit_tokens[corpus.units]
    for a, b in pairwise(feeder.starts):
        assert b in boundaries or sizes[a : b + 1].sum() > feeder.limits.max_slots
    if max_seq_len > 12:
        assert (ends - firsts).sum() < 1.1 * 20 * corpus.info.units


def test_sequences_start_at_the_same_units_for_every_seed_and_kind_of_masking(corpus: Corpus) -> None:
    one, other = (Feeder(corpus, 64, Masking(explicit, 0.15, seed)) for explicit, seed in ((True, 1), (False, 2)))
    assert np.array_equal(one.starts, other.starts)
    assert one.limits == other.limits
    with pytest.raises(InputError, match=r"data\.max_seq_len: 9 is too short"):
        feeder_of(corpus, 9, pack_documents=False)


def unchanged_inputs(feeder: Feeder) -> float:
    """Return the share of full sequences whose input stays the same if other units are hidden in it.

    Each masked unit is replaced by a unit that is masked elsewhere, so lengths change as they do in the corpus.
    """
    indices, epochs = np.arange(len(feeder)), np.zeros(len(feeder), np.int64)
    before = feeder.batch(indices, epochs)
    random = np.random.default_rng(0)
    corpus = feeder.corpus
    same = []
    for index in indices:
        first = feeder.starts[index]
        one = feeder.batch(indices[index : index + 1], epochs[:1])
        # Walk over the sequence to find its masked units in the corpus.
        changed, slot, unit = np.asarray(corpus.units).copy(), 1, int(first)
        masks = set(one["slots"].tolist())
        while slot < one["lengths"][0] - 1:
            if slot in masks:
                changed[unit] = random.choice(before["unit_ids"])
            slot += 1 if slot in masks else int(corpus.unit_tokens[corpus.units[unit]])
            unit += 1
        if unit in feeder.documents:
            continue  # ended by its document
        moved = copy.copy(feeder)
        moved.corpus = copy.copy(corpus)
        moved.corpus.units = changed
        other = moved.batch(indices[index : index + 1], epochs[:1])
        same.append(np.array_equal(one["input_ids"], other["input_ids"]))
    return float(np.mean(same))


def test_the_input_does_not_depend_on_the_hidden_units(corpus: Corpus) -> None:
    """Nothing that the model reads changes if other units of any length are hidden: neither the tokens nor [SEP]."""
    assert unchanged_inputs(feeder_of(corpus, 64, pack_documents=True)) > 0.98
    # Not so if sequences have as many tokens before masking as fit, without reserved units: the cut of version 1.
    filled = feeder_of(corpus, 64, pack_documents=True)
    filled.starts, filled.limits = starts_of(corpus, 62, True), SequenceLimits(62, 62, np.uint64(0))
    assert unchanged_inputs(filled) < 0.5
