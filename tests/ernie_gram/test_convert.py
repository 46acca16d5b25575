"""The command that converts model folders: its summary, losses, errors, and the use of what it wrote."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from ernie_gram import fill_mask
from ernie_gram.convert import main
from ernie_gram.formats.model import ModelRecord
from ernie_gram.formats.registry import WRITTEN_NAMES, read_model, write_model
from tests.support.commands import assert_every_file_is_own, assert_one_line_error, call
from tests.support.model_folders import random_model


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A folder of ours with a head over tokens and relative position."""
    write_model(random_model(with_head=True), tmp_path / "model", "ernie_gram")
    return tmp_path / "model"


def test_losses_are_refused_then_listed_if_accepted(model: Path, tmp_path: Path) -> None:
    target = tmp_path / "bert"
    refused = call(main, str(model), str(target), "--to", "bert")
    assert (refused.returncode, target.exists()) == (2, False)
    assert refused.stderr.startswith(f"error: {model}: bert cannot hold ")
    done = call(main, str(model), str(target), "--to", "bert", "--accept_loss").ok()
    assert "lost     relative position" in done.stdout
    expected = read_model(model).parameters
    for name, values in read_model(target).parameters.items():
        assert np.array_equal(values, expected[name])


def test_settings_of_prediction_heads_from_strangers_are_checked_where_they_are_used(model: Path) -> None:
    path = model / "ernie_config.json"
    settings = json.loads(path.read_text())
    for section in ({"masking": "contiguous", "code": "os.system"}, {"masking": {"class_path": "os.system"}}):
        settings["pretraining"]["objective"] = section
        path.write_text(json.dumps(settings))
        done = call(fill_mask.main, str(model), "a [MASK]")
        assert_one_line_error(done, str(model))
        assert "objective." in done.stderr


@pytest.mark.parametrize("name", WRITTEN_NAMES)
def test_no_file_of_a_model_folder_may_be_an_output(tmp_path: Path, name: str) -> None:
    write_model(random_model(use_relative_position=False), tmp_path / "model", name)
    assert_every_file_is_own(tmp_path / "model", "model")


def test_a_folder_that_another_process_writes_is_refused(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "target"
    seconds = []

    def start_another(path: Path, *_: object) -> ModelRecord:
        if not seconds:
            seconds.append(call(main, str(model), str(target)))
        return read_model(path)

    monkeypatch.setattr("ernie_gram.convert.read_model", start_another)
    call(main, str(model), str(target)).ok()
    assert_one_line_error(seconds[0], f"{target}: is being written by process {os.getpid()} on ", 1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "target"]
