"""Runs that start from a given model: what --check and the training say, what is stored, and what is refused."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
import yaml

from ernie_gram.pretraining import prepare
from ernie_gram.run import checkpoint
from reader.corpus.memmap import Corpus
from tests.support.commands import Done, assert_one_line_error
from tests.support.given_model import given_bert
from tests.support.objectives import as_options
from tests.support.runs import evaluations, pretrain_with

SETTINGS = [
    *("--data.max_seq_len=32", "--data.batch_size=8", "--optimizer.learning_rate=1e-3", "--optimizer.warmup_steps=1"),
    *("--optimizer.decay_steps=4", "--trainer.log_every=1", "--trainer.visualdl=false", "--paths.start=given"),
    *as_options("explicit"),
]


@pytest.fixture
def given(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> Mock:
    """Stands for read_model, and returns the given model."""
    reader = Mock(return_value=given_bert(corpus.vocabulary, notes=("the head for sentence pairs is dropped",)))
    monkeypatch.setattr(prepare, "read_model", reader)
    return reader


def run(built: Path, output: Path, *more: str) -> Done:
    paths = [f"--paths.corpus={built / 'corpus'}", f"--paths.held_out={built / 'held_out'}", f"--paths.output={output}"]
    return pretrain_with(*SETTINGS, *paths, *more)


def test_a_run_starts_from_the_given_model_and_its_check_says_the_same(
    given: Mock, built: Path, tmp_path: Path
) -> None:
    steps = ["--trainer.max_steps=2", "--model.layer_norm_eps=1e-5", "--model.use_relative_position=true"]
    checked = run(built, tmp_path / "run", *steps, "--check").ok()
    assert not (tmp_path / "run").exists()
    given.assert_called_once_with(Path("given"))
    done = run(built, tmp_path / "run", *steps).ok()
    assert given.call_count == 2
    for message in (
        "start    given (bert): 39 parameters",
        "note     given: the head for sentence pairs is dropped\n",
        "start values: 37 of 44 parameters from given\n",
        "in given, not used: pooled_fc.b_0, pooled_fc.w_0\n",
    ):
        assert message in checked.stdout, message
        assert message in done.stdout, message
    # The stored settings are those of the model.
    model = yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())["model"]
    assert model == checkpoint.load_state(tmp_path / "run" / "step_2").config["model"]
    expected = {"hidden_size": 16, "intermediate_size": 40, "layer_norm_eps": 1e-5, "vocab_size": 1000}
    assert expected.items() <= model.items()
    # Two steps at a rate of 1e-3 at most move no parameter far.
    trained = checkpoint.load_model(tmp_path / "run" / "step_2")
    for name in ("word_embedding", "encoder_layer_1_ffn_fc_0.w_0"):
        assert np.abs(trained[name] - given.return_value.parameters[name]).max() < 2.5e-3
    assert len(evaluations(tmp_path / "run")) == 2


def test_a_run_resumes_with_the_same_start_only(given: Mock, built: Path, corpus: Corpus, tmp_path: Path) -> None:
    output, model = tmp_path / "run", given.return_value
    run(built, output, "--trainer.max_steps=1").ok()
    given.return_value = given_bert(corpus.vocabulary, seed=1)
    for more, key in (([], "paths.start: "), (["--model.num_hidden_layers=3"], "model.num_hidden_layers: 3")):
        refused = run(built, output, "--trainer.max_steps=2", *more)
        assert_one_line_error(refused, "")
        assert key in refused.stderr
    given.return_value = dataclasses.replace(model, source=Path("moved"))
    # The stored settings name every key of the model, so they can be used as they are.
    again = run(built, output, "--config", str(output / "config.yaml"), "--trainer.max_steps=2").ok()
    assert "start values" not in again.stdout
    assert checkpoint.load_state(output / "step_2").step == 2
