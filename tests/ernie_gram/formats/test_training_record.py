"""What a card says about a training run stays with the model, through every folder of ours."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from ernie_gram.formats.registry import read_model, write_model
from ernie_gram.formats.training_record import TrainingRecord, record_of_json, record_of_run
from reader.errors import InputError
from tests.support.model_folders import random_model

CONFIG = {
    "seed": 3,
    "model": {"hidden_size": 16},
    "optimizer": {"learning_rate": 0.1},
    "paths": {"corpus": "/home/me/secret/corpus_en", "start": "/home/me/bert", "output": "/home/me/run"},
    "trainer": {"max_steps": 500, "workers": 3},
}
EVALUATION = {"kind": "eval", "step": 9, "loss": 1.5}
RECORD = TrainingRecord(
    "corpus_en",
    "bert",
    {"seed": 3, "optimizer": {"learning_rate": 0.1}, "trainer": {"max_steps": 500}},
    {"step": 9, "loss": 1.5},
)


def test_the_record_of_a_run_has_no_paths_and_is_the_same_after_json() -> None:
    assert record_of_run(CONFIG, EVALUATION) == RECORD
    assert record_of_run({"paths": {"corpus": "en", "start": None}}, None) == TrainingRecord("en")
    assert record_of_json(json.loads(json.dumps(asdict(RECORD))), "x") == RECORD
    assert record_of_json(None, "x") is None


@pytest.mark.parametrize(
    "value",
    [[], "x", {"corpus": 3}, {"settings": []}, {"scores": {"loss": "low"}}, {"scores": {"loss": True}}, {"code": "os"}],
)
def test_other_values_are_refused(value: object) -> None:
    with pytest.raises(InputError, match=r"^file: training: expected corpus, start, settings, scores"):
        record_of_json(value, "file: training")


def test_scores_and_data_are_in_the_card_of_an_export_from_a_converted_run(tmp_path: Path) -> None:
    model = random_model(use_relative_position=False, training=RECORD)
    write_model(model, tmp_path / "ours", "ernie_gram")
    found = read_model(tmp_path / "ours")
    assert found.training == RECORD
    write_model(found, tmp_path / "paddlenlp", "paddlenlp")
    card = (tmp_path / "paddlenlp" / "README.md").read_text()
    assert "| loss | 1.5 |" in card
    assert "`corpus_en`" in card
    assert "learning_rate: 0.1" in card
