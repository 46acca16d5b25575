"""The encoder (paper, equation 4) against a forward pass in numpy that follows the definitions."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from ernie_gram.graph import computing
from ernie_gram.model import parameters
from ernie_gram.model.encoder import Encoder, Queries
from reader.batches.fields import Batch
from tests.support import reference_model as reference
from tests.support.small_model import MODEL, TOKENS, random_batch
from tests.support.static_programs import run

SMALL = dataclasses.replace(
    MODEL, num_hidden_layers=3, num_attention_heads=4, max_position_embeddings=128, sent_type_vocab_size=3
)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({}, id="relative_position"),
        pytest.param({"use_relative_position": False}, id="no_relative_position"),
        pytest.param({"use_sentence_embedding": True}, id="sentence_embedding"),
        pytest.param({"intermediate_size": 40}, id="intermediate_size"),
        # The largest value that Paddle allows: the output must depend on it.
        pytest.param({"layer_norm_eps": 1e-3}, id="layer_norm_eps"),
        pytest.param(
            {"emb_size": 12, "use_sentence_embedding": True, "use_relative_position": False},
            id="emb_size-sentence_embedding-no_relative_position",
        ),
    ],
)
def test_equation_4_the_encoder_equals_the_reference(change: dict[str, object]) -> None:
    config = dataclasses.replace(SMALL, **change)  # type: ignore[arg-type]
    random = np.random.default_rng(3)
    lengths = np.array([100, 7, 2], np.int64)
    ids = random.integers(0, 50, (3, 100))
    sentences = random.integers(0, 3, (3, 100))

    def build(feeds: dict) -> list:
        encoder, found = Encoder(parameters.encoder(config, 50, with_queries=True), config), []
        inputs, queries = [feeds[name] for name in batch], Queries(feeds["ranks"], feeds["places"])
        encoder.eval()
        for fuses in (False, True):
            with computing("float32", fuses):
                found += [encoder(*inputs)[0], *encoder(*inputs, queries=queries, wanted_M=feeds["slots"])]
        return found

    batch, slots = {"ids": ids, "lengths": lengths, "sentences": sentences}, np.array([101, 0, 100, 99])
    ranks, places = random.integers(0, 4, (3, 2)), random.integers(0, lengths[:, np.newaxis], (3, 2))
    found, p = run(build, {**batch, "slots": slots, "ranks": ranks, "places": places})
    for hidden, wanted, query_rows in (found[:3], found[3:]):
        np.testing.assert_allclose(wanted, hidden[slots], atol=1e-6)
        for row, length in enumerate(lengths):
            words = p["word_embedding"][ids[row, :length]].astype(np.float64)
            queries = [*zip(ranks[row], places[row], strict=True)]
            expected, rows = reference.encode(config, p, words, sentences[row, :length], queries)
            np.testing.assert_allclose(hidden.reshape(3, 100, -1)[row, :length], expected, atol=1e-5)
            np.testing.assert_allclose(query_rows.reshape(3, 2, -1)[row], rows, atol=1e-5)


def encoder_outputs(batch: Batch) -> tuple[np.ndarray, np.ndarray]:
    """Return context rows [B, L, H] and query rows [B, K, H] of a batch; the parameters are the same in every call."""

    def build(feeds: dict) -> list:
        encoder = Encoder(parameters.encoder(MODEL, TOKENS, with_queries=True), MODEL)
        encoder.eval()
        queries = Queries(feeds["query_ranks"], feeds["query_slots"]) if "query_ranks" in feeds else None
        return [value for value in encoder(feeds["input_ids"], feeds["lengths"], queries=queries) if value is not None]

    encoder_feeds = {
        name: value for name, value in batch.items() if name in ("input_ids", "lengths", "query_ranks", "query_slots")
    }
    outputs, _ = run(build, encoder_feeds)
    rows = len(batch["lengths"])
    return outputs[0].reshape(rows, -1, 24), outputs[-1].reshape(rows, -1, 24)


def test_equation_4_a_query_row_changes_neither_the_context_nor_another_query_row() -> None:
    batch = random_batch("cnp")
    context, queries = encoder_outputs(batch)
    without = {name: value for name, value in batch.items() if not name.startswith("query")}
    assert np.array_equal(encoder_outputs(without)[0], context)
    # Row 1 of each sequence stays the same: first all other rows change, then rows are added, then row 1 is alone.
    other = batch | {"query_slots": (batch["query_slots"] + 1) % 7, "query_ranks": (batch["query_ranks"] + 1) % 4}
    for name in ("query_slots", "query_ranks"):
        other[name][:, 1] = batch[name][:, 1]
    added = batch | {name: np.concatenate([batch[name], other[name]], 1) for name in ("query_slots", "query_ranks")}
    alone = batch | {name: batch[name][:, 1:2] for name in ("query_slots", "query_ranks")}
    for changed, column in ((other, 1), (added, 1), (alone, 0)):
        changed_context, changed_queries = encoder_outputs(changed)
        assert np.array_equal(changed_context, context)
        np.testing.assert_allclose(changed_queries[:, column], queries[:, 1], atol=1e-6)
    assert not np.allclose(encoder_outputs(other)[1][:, 0], queries[:, 0], atol=1e-2)


@pytest.mark.parametrize("fuses", [False, True])
def test_dropout_applies_only_in_training(fuses: bool) -> None:
    def build(feeds: dict) -> list:
        found = []
        for hidden, attention, trains in ((0.0, 0.0, False), (0.9, 0.9, False), (0.9, 0.0, True), (0.0, 0.9, True)):
            config = dataclasses.replace(SMALL, hidden_dropout_prob=hidden, attention_probs_dropout_prob=attention)
            encoder = Encoder(parameters.encoder(config, 50), config)
            encoder.train() if trains else encoder.eval()
            with computing("float32", fuses):
                found.append(encoder(feeds["ids"], feeds["lengths"])[0])
        return found

    ids = np.random.default_rng(1).integers(1, 50, (2, 21))
    (expected, found, *dropped), _ = run(build, {"ids": ids, "lengths": np.array([21, 21])})
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert not any(np.allclose(each, expected, atol=1e-2) for each in dropped)
