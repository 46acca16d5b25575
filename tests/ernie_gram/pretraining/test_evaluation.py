"""Metrics against their definitions, and the picture and log made of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ernie_gram.plot import plot_runs
from ernie_gram.pretraining.evaluation import log_frequencies, metrics, unit_sums
from ernie_gram.run.run_log import RunLog, read_log
from reader.errors import InputError

COUNTS = np.array([5, 0, 3, 2, 0, 1])  # F = 4 tokens, 2 n-grams


def test_metrics_are_their_definitions() -> None:
    # Four masked units: tokens 0 and 2, n-gram 5 (of three slots), n-gram 4 (of one).
    batch = {
        "token_labels": np.array([0, 1, 2, 3, 2, 0]),
        "slot_units": np.array([0, 1, 1, 1, 2, 3]),
        "unit_ids": np.array([0, 5, 2, 4]),
    }
    losses = np.array([0.5, 1.0, 2.0, 3.0, 0.25, 4.0], np.float32)
    best = np.array([0, 1, 2, 0, 2, 0])  # one slot of n-gram 5 is wrong
    log_p = log_frequencies(COUNTS)
    assert np.exp(log_p).sum() == pytest.approx(1)
    assert np.exp(log_p[0]) == pytest.approx(6 / 17)
    sums = unit_sums(lambda _: {"row_loss": losses, "row_best": best}, [batch], log_p, num_tokens=4)
    found = metrics(sums)
    assert "generator_ngram_perplexity" not in found
    per_unit = [0.5, 6.0, 0.25, 4.0]
    assert found["loss"] == pytest.approx(np.mean(per_unit))
    assert found["perplexity"] == pytest.approx(np.exp(np.mean(per_unit)))
    assert found["accuracy"] == 3 / 4
    assert found["ngram_perplexity"] == pytest.approx(np.exp((6.0 + 4.0) / 2))
    assert found["frequency_perplexity"] == pytest.approx(1 / np.prod(np.exp(log_p[[0, 5, 2, 4]])) ** (1 / 4))


def test_a_generator_is_judged_by_ngrams_and_other_units_have_no_baseline() -> None:
    batch = {"coarse_labels": np.array([0, 5, 4]), "slot_units": np.arange(3), "unit_ids": np.array([0, 5, 4])}
    loss = np.array([1.0, 2.0, 4.0], np.float32)
    predicted = {"row_loss": loss, "row_best": np.zeros(3, int), "generator_loss": loss + 1}
    found = metrics(unit_sums(lambda _: predicted, [batch], None, num_tokens=4))
    assert found["ngram_perplexity"] == pytest.approx(np.exp(3))
    assert found["generator_ngram_perplexity"] == pytest.approx(np.exp(4))
    assert "frequency_perplexity" not in found


def test_sums_of_parts_are_sums_of_all_and_no_ngram_is_no_perplexity() -> None:
    def predict(batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        return {"row_loss": batch["coarse_labels"] / 10, "row_best": batch["coarse_labels"]}

    def batch(units: list[int]) -> dict[str, np.ndarray]:
        return {"coarse_labels": np.array(units), "slot_units": np.arange(len(units)), "unit_ids": np.array(units)}

    log_p = log_frequencies(COUNTS)
    one, two = ([batch([0, 1, 5])], [batch([2, 2])])
    together = unit_sums(predict, one + two, log_p, 4)
    np.testing.assert_allclose(unit_sums(predict, one, log_p, 4) + unit_sums(predict, two, log_p, 4), together)
    assert "ngram_perplexity" not in metrics(unit_sums(predict, two, log_p, 4))


def test_the_log_keeps_what_is_before_the_checkpoint_and_plots(tmp_path: Path) -> None:
    log = RunLog(tmp_path, True, visualdl=True, start=0, max_steps=20)
    for step in (0, 10, 20):
        log.record("eval", step, {"perplexity": 100.0 - step, "frequency_perplexity": 50.0})
        log.record("train", step, {"loss": 5.0 - step / 10})
    log.close()
    assert list((tmp_path / "visualdl").glob("vdlrecords*"))
    RunLog(tmp_path, True, visualdl=False, start=10, max_steps=20).close()
    assert [record["step"] for record in read_log(tmp_path)] == [0, 0, 10, 10]
    plot_runs([tmp_path], tmp_path / "curve.png")
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(InputError, match="not the folder of a run"):
        plot_runs([tmp_path / "nowhere"], tmp_path / "other.png")


def test_a_silent_rank_writes_nothing(tmp_path: Path) -> None:
    log = RunLog(tmp_path, False, visualdl=True, start=0, max_steps=20)
    log.record("train", 1, {"loss": 1.0})
    log.close()
    assert list(tmp_path.iterdir()) == []
