"""The command that converts model folders: its summary, losses, errors, and the use of what it wrote."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from ernie_gram import fill_mask
from ernie_gram.convert import main
from ernie_gram.formats.model import Model
from ernie_gram.formats.registry import FORMATS, WRITTEN_NAMES, read_model, write_model
from tests.support.commands import call
from tests.support.model_folders import random_model
from tests.support.own_files import assert_every_file_is_own
from tests.support.static_programs import fresh_scope


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A folder of ours with a head over tokens and relative position."""
    write_model(random_model(with_head=True), tmp_path / "model", "ernie_gram")
    return tmp_path / "model"


def test_the_summary_names_the_format_and_the_files(model: Path, tmp_path: Path) -> None:
    done = call(main, str(model), str(tmp_path / "static"), "--to", "upstream_static")
    assert done.returncode == 0, done.stderr
    lines = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
    assert lines["read"].startswith(f"{model}: ernie_gram; 2 layers, 16 wide, 4 heads; 42 parameters with ")
    assert lines["read"].endswith("; 20 tokens; prediction heads")
    assert lines["written"] == f"{tmp_path / 'static'}: upstream_static; ernie_config.json, params/, vocab.txt"
    with fresh_scope():
        filled = call(fill_mask.main, str(tmp_path / "static"), "the [MASK] is here")
    assert filled.returncode == 0, filled.stderr
    assert filled.stdout.count("%") == 5


def test_a_converted_run_fills_masks_as_the_run_does(finished: Path, tmp_path: Path) -> None:
    done = call(main, str(finished), str(tmp_path / "converted"))
    assert done.returncode == 0, done.stderr
    outputs = []
    for folder in (finished, tmp_path / "converted"):
        with fresh_scope():
            filled = call(fill_mask.main, str(folder), "--json", "--ngrams", "the [MASK] of [MASK]")
        assert filled.returncode == 0, filled.stderr
        outputs.append(filled.stdout)
    assert outputs[0] == outputs[1]


def test_losses_are_refused_then_listed_if_accepted(model: Path, tmp_path: Path) -> None:
    target = tmp_path / "bert"
    refused = call(main, str(model), str(target), "--to", "bert")
    assert refused.returncode == 2
    assert "bert cannot hold relative position" in refused.stderr
    assert "--accept_loss" in refused.stderr
    assert not target.exists()
    refused = call(main, str(model), str(target), "--to", "paddlenlp")
    start = (
        f"error: {model}: paddlenlp cannot hold the 5 parameters of the prediction heads: prediction heads cannot be"
    )
    assert refused.stderr.startswith(start)
    assert "; nor relative position: PaddleNLP stores" in refused.stderr
    assert refused.stderr.endswith("; --accept_loss writes the model all the same\n")
    done = call(main, str(model), str(target), "--to", "bert", "--accept_loss")
    assert done.returncode == 0, done.stderr
    assert "lost     relative position: BERT has no bias by distance" in done.stdout
    expected = read_model(model).parameters
    for name, values in read_model(target).parameters.items():
        assert np.array_equal(values, expected[name])


def test_a_model_without_heads_is_for_training_and_cannot_fill_masks(tmp_path: Path) -> None:
    write_model(random_model(use_relative_position=False), tmp_path / "bert", "bert")
    call(main, str(tmp_path / "bert"), str(tmp_path / "ernie_gram"))
    filled = call(fill_mask.main, str(tmp_path / "ernie_gram"), "a [MASK]")
    assert filled.returncode == 2
    assert filled.stderr.startswith(f"error: {tmp_path / 'ernie_gram'}: the model has no prediction heads")


def test_fill_mask_says_what_reading_the_folder_assumed(tmp_path: Path) -> None:
    folder = tmp_path / "bert"
    write_model(random_model(with_head=True, use_relative_position=False), folder, "bert")
    (folder / "tokenizer_config.json").unlink()
    with fresh_scope():
        done = call(fill_mask.main, str(folder), "the [MASK]")
    assert done.returncode == 0, done.stderr
    assert f"note: {folder}: tokenizer_config.json does not say whether text becomes lower case" in done.stderr
    assert "note" not in done.stdout


def test_settings_of_prediction_heads_from_strangers_are_checked_where_they_are_used(model: Path) -> None:
    path = model / "ernie_config.json"
    settings = json.loads(path.read_text())
    for section, message in (
        ({"masking": "contiguous", "code": "os.system"}, "unknown key objective.code"),
        ({"masking": "everything"}, "objective.masking: expected explicit or contiguous, got 'everything'"),
        ({"masking": {"class_path": "os.system"}}, "unknown key objective.masking.class_path"),
    ):
        settings["pretraining"]["objective"] = section
        path.write_text(json.dumps(settings))
        done = call(fill_mask.main, str(model), "a [MASK]")
        assert done.returncode == 2
        assert done.stderr.startswith(f"error: {model}")
        assert len(done.stderr.splitlines()) == 1
        assert message in done.stderr


def test_the_list_names_every_format() -> None:
    done = call(main, "--list")
    assert [line.split()[0] for line in done.stdout.splitlines()] == [each.name for each in FORMATS]


@pytest.mark.parametrize("name", WRITTEN_NAMES)
def test_no_file_of_a_model_folder_may_be_an_output(tmp_path: Path, name: str) -> None:
    write_model(random_model(use_relative_position=False), tmp_path / "model", name)
    assert_every_file_is_own(tmp_path / "model", "model")


def test_a_folder_that_another_process_writes_is_refused(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "target"
    seconds = []

    def start_another(path: Path, *_: object) -> Model:
        if not seconds:
            seconds.append(call(main, str(model), str(target)))
        return read_model(path)

    monkeypatch.setattr("ernie_gram.convert.read_model", start_another)
    assert call(main, str(model), str(target)).returncode == 0
    [second] = seconds
    assert (second.returncode, second.stdout, second.stderr.count("\n")) == (1, "", 1)
    assert second.stderr.startswith(f"error: {target}: is being written by process {os.getpid()} on ")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "target"]


def test_wrong_arguments_are_refused_in_one_line(model: Path, tmp_path: Path) -> None:
    for arguments, message in (
        ([str(model)], "expected two folders, SRC and DST"),
        ([str(model), str(tmp_path / "new"), "--to", "gpt"], "argument --to: invalid choice: 'gpt'"),
        ([str(model), str(model)], "model: exists already"),
        ([str(tmp_path), str(tmp_path / "new")], "not a checkpoint, and not a run's folder"),
    ):
        done = call(main, *arguments)
        assert done.returncode == 2
        assert message in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "new").exists()
