"""Invalid settings and corpora are refused before training, with a one-line error; no file is changed.

And runs that start from a given model: what --check and the training say, what is stored, and what is refused.
"""

from __future__ import annotations

import dataclasses
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import yaml

from ernie_gram.pretraining import prepare
from ernie_gram.pretraining.config import DataConfig, PathsConfig, PretrainConfig
from ernie_gram.pretraining.prepare import feeders
from ernie_gram.run import checkpoint
from reader.corpus.memmap import Corpus
from tests.support.commands import ROOT, Done, assert_one_line_error, build
from tests.support.model_folders import given_bert
from tests.support.objectives import OBJECTIVES, as_options
from tests.support.runs import FINISHED, evaluations, pretrain, pretrain_with


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ("--data.max_seq_len=30", "data.max_seq_len: 32"),
        ("--seed=2", "seed: 1"),
        ("--trainer.max_steps=30", "trainer.max_steps: 24"),
        ("--data.batch_size=0", "data.batch_size"),
        ("--data.max_seq_len=8 --paths.output=elsewhere", "data.max_seq_len"),
        ("--model.layer_norm_eps=0.1", "model.layer_norm_eps"),
        ("--model.intermediate_size=0", "model.intermediate_size"),
        ("--model.use_pooler=true", "model.use_pooler"),
        ("--model.max_ngram_tokens=2 --objective.comprehensive_weight=1", "--model.max_ngram_tokens 8"),
        ("--objective.rtd_weight=1", "objective.rtd_weight"),
        ("--objective.explicit_weight=0", "objective.explicit_weight"),
        ("--objective.masking=contiguous --objective.contiguous_weight=1", "objective.explicit_weight"),
        ("--objective.comprehensive_weight=-1", "objective.comprehensive_weight"),
        ("--objective.contiguous_weight=1", "objective.contiguous_weight"),
        ("--generator.num_attention_heads=2", "generator.num_attention_heads: None"),
        ("--model.vocab_size=10", "model.vocab_size: 10"),
        ("--paths.corpus=nowhere", "nowhere"),
        ("--paths.corpus=", "paths.corpus"),
    ],
)
def test_invalid_settings_give_a_one_line_error_and_change_no_file(
    built: Path, run_copy: Path, change: str, key: str
) -> None:
    before = {path: path.stat().st_mtime_ns for path in run_copy.rglob("*")}
    assert_one_line_error(done := pretrain(built, run_copy, *FINISHED, *change.split()), "")
    assert key in done.stderr
    assert not (ROOT / "elsewhere").exists()
    assert {path: path.stat().st_mtime_ns for path in run_copy.rglob("*")} == before


def test_a_held_out_corpus_of_another_vocabulary_is_refused(built: Path, tmp_path: Path) -> None:
    other = tmp_path / "held_out"
    arguments = ["--input", str(built / "held_out.txt"), "--vocab", str(built / "vocab.txt"), "--cased"]
    build("corpus", *arguments, "--output", str(other))
    assert_one_line_error(pretrain(built, tmp_path / "run", f"--paths.held_out={other}"), "paths.held_out: ")
    assert not (tmp_path / "run").exists()


def test_evaluations_on_another_text_do_not_follow_in_the_same_folder(built: Path, finished: Path) -> None:
    done = pretrain(built, finished, *FINISHED, f"--paths.held_out={built / 'corpus'}", "--check")
    assert_one_line_error(done, f"paths.held_out: {finished} ")
    for again in (str(built / "held_out"), "null"):
        pretrain(built, finished, *FINISHED, f"--paths.held_out={again}", "--check").ok()


@pytest.mark.parametrize("more", [[], ["--check"]])
def test_an_output_that_cannot_be_the_folder_of_a_run_is_refused(
    built: Path, finished: Path, tmp_path: Path, more: list[str]
) -> None:
    (tmp_path / "linked").symlink_to(finished / "step_24")
    for output, message in (
        (built / "corpus", "paths.output: {} is the folder of a corpus"),
        (tmp_path / "linked", "paths.output: {} is the folder of a checkpoint"),
    ):
        assert_one_line_error(pretrain(built, output, *more), message.format(output))


@pytest.mark.parametrize(
    "changed",
    [
        {"seed": 2},
        {"data": DataConfig(max_seq_len=48)},
        {"data": DataConfig(max_seq_len=32, pack_documents=True)},
        {"objective": replace(OBJECTIVES["explicit"], mask_fraction=0.3)},
        {"objective": OBJECTIVES["contiguous"]},
    ],
    ids=["seed", "length", "packing", "fraction", "masking"],
)
def test_settings_decide_over_the_sequences_and_masks_of_training_and_evaluation(
    corpus: Corpus, changed: dict[str, Any]
) -> None:
    paths = PathsConfig(corpus=str(corpus.path), held_out=str(corpus.path))
    config = PretrainConfig(objective=OBJECTIVES["explicit"], data=DataConfig(max_seq_len=32), paths=paths)
    rows, epochs = np.arange(40), np.zeros(40, np.int64)
    found = []
    for each in (config, replace(config), replace(config, **changed)):
        found.append([feeder.batch(rows, epochs)["input_ids"] for feeder in feeders(each, corpus) if feeder])
    for first, again, other in zip(*found, strict=True):
        assert np.array_equal(first, again)
        assert not np.array_equal(first, other)


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


def start_given(built: Path, output: Path, *more: str) -> Done:
    paths = [f"--paths.corpus={built / 'corpus'}", f"--paths.held_out={built / 'held_out'}", f"--paths.output={output}"]
    return pretrain_with(*SETTINGS, *paths, *more)


def test_a_run_starts_from_the_given_model_and_its_check_says_the_same(
    given: Mock, built: Path, tmp_path: Path
) -> None:
    steps = ["--trainer.max_steps=2", "--model.layer_norm_eps=1e-5", "--model.use_relative_position=true"]
    checked = start_given(built, tmp_path / "run", *steps, "--check").ok()
    assert not (tmp_path / "run").exists()
    given.assert_called_once_with(Path("given"))
    done = start_given(built, tmp_path / "run", *steps).ok()
    assert given.call_count == 2
    for message in (
        "start    given (bert): 39 parameters",
        "note     given: the head for sentence pairs is dropped\n",
    ):
        assert message in checked.stdout, message
        assert message in done.stdout, message
    assert "start values: 44 of 44 parameters from given\n" in done.stdout
    assert "in given, not used: pooled_fc.b_0, pooled_fc.w_0\n" in done.stdout
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
    start_given(built, output, "--trainer.max_steps=1").ok()
    given.return_value = given_bert(corpus.vocabulary, seed=1)
    for more, key in (([], "paths.start: "), (["--model.num_hidden_layers=3"], "model.num_hidden_layers: 3")):
        refused = start_given(built, output, "--trainer.max_steps=2", *more)
        assert_one_line_error(refused, "")
        assert key in refused.stderr
    given.return_value = dataclasses.replace(model, source=Path("moved"))
    # The stored settings name every key of the model, so they can be used as they are.
    again = start_given(built, output, "--config", str(output / "config.yaml"), "--trainer.max_steps=2").ok()
    assert "start values" not in again.stdout
    assert checkpoint.load_state(output / "step_2").step == 2
