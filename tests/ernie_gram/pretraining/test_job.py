"""The metrics of an evaluation against their definitions, and the operations of a batch on a CPU without padding."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from ernie_gram.distributed.world import start_world
from ernie_gram.pretraining.job import HeldOutEvaluator, PretrainNetwork, evaluation_sums, metrics
from ernie_gram.pretraining.sizes import BatchShape, CorpusSizes, log_frequencies
from ernie_gram.pretraining.terms.catalog import evaluated, step_flops
from ernie_gram.pretraining.terms.term import Reference
from ernie_gram.training.config import TrainerConfig
from ernie_gram.training.program import Program
from reader.batches.feeder import Feeder, Masking
from reader.batches.fields import Batch
from reader.corpus.memmap import Corpus
from tests.support.objectives import OBJECTIVES
from tests.support.small_model import NGRAMS, RUNGS, TOKENS, config_of, random_batch
from tests.support.static_programs import fresh_scope

TOKEN, EXPLICIT, ENRM = (evaluated(OBJECTIVES[rung]) for rung in ("contiguous", "explicit", "enrm"))
COUNTS = np.array([5, 0, 3, 2, 0, 1])  # F = 4 tokens, 2 n-grams


def test_metrics_equal_their_definitions() -> None:
    # Four masked units: tokens 0 and 2, n-gram 5 (three slots), n-gram 4 (one slot).
    batch = {
        "token_labels": np.array([0, 1, 2, 3, 2, 0]),
        "slot_units": np.array([0, 1, 1, 1, 2, 3]),
        "unit_ids": np.array([0, 5, 2, 4]),
    }
    losses = np.array([0.5, 1.0, 2.0, 3.0, 0.25, 4.0], np.float32)
    best = np.array([0, 0, 0, 3, 2, 0])  # the first two slots of n-gram 5 are predicted wrongly
    log_p = log_frequencies(COUNTS)
    assert np.exp(log_p).sum() == pytest.approx(1)
    assert np.exp(log_p[0]) == pytest.approx(6 / 17)
    sums = evaluation_sums(TOKEN, lambda _: {"row_loss": losses, "row_best": best}, [batch], Reference(log_p, 4))
    found = metrics(TOKEN, sums)
    assert "generator_ngram_perplexity" not in found
    per_unit = [0.5, 6.0, 0.25, 4.0]
    assert found["loss"] == pytest.approx(np.mean(per_unit))
    assert found["perplexity"] == pytest.approx(np.exp(np.mean(per_unit)))
    assert found["accuracy"] == 3 / 4
    assert found["ngram_perplexity"] == pytest.approx(np.exp((6.0 + 4.0) / 2))
    assert found["frequency_perplexity"] == pytest.approx(1 / np.prod(np.exp(log_p[[0, 5, 2, 4]])) ** (1 / 4))


def test_a_generator_adds_its_ngram_perplexity_and_without_frequencies_there_is_no_baseline() -> None:
    batch = {"coarse_labels": np.array([0, 5, 4]), "slot_units": np.arange(3), "unit_ids": np.array([0, 5, 4])}
    loss = np.array([1.0, 2.0, 4.0], np.float32)
    predicted = {"row_loss": loss, "row_best": np.zeros(3, int), "generator_loss": loss + 1}
    found = metrics(ENRM, evaluation_sums(ENRM, lambda _: predicted, [batch], Reference(None, 4)))
    assert found["ngram_perplexity"] == pytest.approx(np.exp(3))
    assert found["generator_ngram_perplexity"] == pytest.approx(np.exp(4))
    assert "frequency_perplexity" not in found


def test_sums_over_batches_add_up_and_without_ngrams_there_is_no_ngram_perplexity() -> None:
    def predict(batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        return {"row_loss": batch["coarse_labels"] / 10, "row_best": batch["coarse_labels"]}

    def batch(units: list[int]) -> dict[str, np.ndarray]:
        return {"coarse_labels": np.array(units), "slot_units": np.arange(len(units)), "unit_ids": np.array(units)}

    log_p = log_frequencies(COUNTS)
    one, two = batch([0, 1, 5]), batch([2, 2])
    sums = [evaluation_sums(EXPLICIT, predict, each, Reference(log_p, 4)) for each in ([one], [two], [one, two])]
    np.testing.assert_allclose(sums[0] + sums[1], sums[2])
    assert "ngram_perplexity" not in metrics(EXPLICIT, sums[1])


def test_the_sums_of_several_draws_are_their_means() -> None:
    losses = iter([1.0, 2.0, 6.0, 3.0, 4.0, 5.0])

    def predict(batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        loss = next(losses)
        # The samples decide whether the model is right, here in one draw of three.
        return {"row_loss": np.array([loss]), "row_best": np.array([5 if loss == 2 else 0])}

    batch = {"coarse_labels": np.array([5]), "slot_units": np.array([0]), "unit_ids": np.array([5])}
    found = metrics(
        EXPLICIT, evaluation_sums(EXPLICIT, predict, [batch] * 2, Reference(log_frequencies(COUNTS), 4), draws=3)
    )
    assert found["loss"] == pytest.approx((3 + 4) / 2)
    assert found["ngram_perplexity"] == pytest.approx(np.exp((3 + 4) / 2))
    assert found["accuracy"] == pytest.approx((1 / 3) / 2)
    assert found["frequency_perplexity"] == pytest.approx(17 / 2)
    assert next(losses, None) is None


def test_a_model_with_a_generator_is_evaluated_over_eight_of_its_samples(corpus: Corpus, built: Path) -> None:
    feeder = Feeder(Corpus(built / "held_out"), 32, Masking(True, 0.15, seed=1), pack_documents=True)
    sizes = CorpusSizes(corpus.info.num_tokens, corpus.info.num_ngrams)
    one_batch = TrainerConfig(eval_sequences=8)
    run = Program.run
    for rung, draws in (("explicit", 1), ("enrm", 8)):
        config = replace(config_of(rung), trainer=one_batch)
        fetched: list[dict[str, np.ndarray]] = []

        def spy(
            program: Program, executor: Any, batch: Batch, fetched: list[dict[str, np.ndarray]] = fetched
        ) -> dict[str, np.ndarray]:
            if not fetched:
                executor.run(program.startup)
            fetched.append(run(program, executor, batch))
            return fetched[-1]

        with fresh_scope() as executor, patch.object(Program, "run", spy):
            found = HeldOutEvaluator(config, sizes, feeder, corpus)(executor, start_world("cpu"))
        losses = np.array([each["row_loss"] for each in fetched], np.float64)
        assert len(losses) == draws == len(np.unique(losses, axis=0))
        assert found["loss"] == pytest.approx(losses.mean())
        if rung == "enrm":
            assert len(np.unique([each["generator_loss"] for each in fetched], axis=0)) == 1


@pytest.mark.parametrize("rung", RUNGS)
def test_operations_are_those_of_the_batch(rung: str) -> None:
    config, sizes, batch = config_of(rung), CorpusSizes(TOKENS, NGRAMS), random_batch(rung)
    queries = batch["query_slots"].shape[1] if "query_slots" in batch else 0
    fine = len(batch["fine_rows"]) if queries else 0
    sequences, slots = batch["input_ids"].shape
    mean = batch["lengths"].mean()
    assert slots > mean
    shape = BatchShape(sequences, round(mean), len(batch["slots"]) / sequences, queries, fine / sequences)
    assert PretrainNetwork(config, sizes, 1).flops(batch) == step_flops(config, sizes, shape) > 0
