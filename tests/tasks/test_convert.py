"""The command that converts pre-trained models: its losses, errors, and the use of what it wrote."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from ernie_gram import fill_mask
from ernie_gram.formats.model import ModelRecord
from ernie_gram.formats.registry import WRITTEN_NAMES, read_model, write_model
from tasks.convert import main
from tests.support.commands import assert_every_file_is_own, assert_one_line_error, call
from tests.support.exported_models import random_model as model_with_heads
from tests.support.model_folders import random_model
from tests.support.small_model import TOKENS
from tests.support.static_programs import fresh_scope


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A folder of ours with a head over tokens and relative position."""
    write_model(random_model(with_head=True), tmp_path / "model", "ernie_gram")
    return tmp_path / "model"


def test_settings_of_prediction_heads_from_strangers_are_checked_where_they_are_used(model: Path) -> None:
    path = model / "ernie_config.json"
    settings = json.loads(path.read_text())
    for section in ({"masking": "contiguous", "code": "os.system"}, {"masking": {"class_path": "os.system"}}):
        settings["pretraining"]["objective"] = section
        path.write_text(json.dumps(settings))
        done = call(fill_mask.main, str(model), "a [MASK]")
        assert_one_line_error(done, str(model))
        assert "objective." in done.stderr


def test_samples_of_a_generator_are_not_for_onnx(tmp_path: Path) -> None:
    write_model(model_with_heads("both", vocab_size=TOKENS), tmp_path / "model", "ernie_gram")
    arguments = map(str, (tmp_path / "model", tmp_path / "new"))
    done = call(main, *arguments, "--to", "onnx", "--outputs", "fill_mask")
    assert (done.returncode, "error: --to: onnx: a generator's samples cannot be repeated" in done.stderr) == (2, True)
    assert not (tmp_path / "new").exists()


def test_a_program_is_of_the_encoder_by_default_and_what_cannot_be_converted_is_refused(
    finished: Path, tmp_path: Path
) -> None:
    encoder, new = tmp_path / "encoder", tmp_path / "new"
    with fresh_scope():
        call(main, str(finished), str(encoder), "--to", "inference").ok()
        assert_every_file_is_own(encoder, "exported model")
        description = json.loads((encoder / "inference.json").read_text())
        assert [spec["name"] for spec in description["fetches"]] == ["hidden", "cls", "mean"]
        assert description["text"] == {
            "max_tokens": 32,
            "vocabulary": "vocab.txt",
            "lowercase": True,
            "segmenter": "jieba",
        }
        for arguments, key in (
            ([finished, encoder], f"{encoder}: "),
            ([finished, "/proc/at/all"], "/proc/at"),
            ([tmp_path / "nowhere", new], f"{tmp_path / 'nowhere'}: "),
            ([encoder, new], f"{encoder}: is an exported program; give the model"),
            ([finished, new, "--to", "inference", "--outputs", "vectors"], "argument --outputs"),
            ([finished, new, "--to", "inference", "--outputs", "task_scores"], f"{finished}: not a fine-tuned model"),
            ([finished, new, "--to", "paddlenlp", "--outputs", "fill_mask"], "--outputs: "),
            ([finished, new, "--outputs", "encoder"], "--outputs: encoder cannot be chosen for ernie_gram"),
        ):
            assert_one_line_error(call(main, *map(str, arguments)), key)
    assert [path.name for path in tmp_path.iterdir()] == ["encoder"]


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

    monkeypatch.setattr("tasks.convert.read_model", start_another)
    call(main, str(model), str(target)).ok()
    assert_one_line_error(seconds[0], f"{target}: is being written by process {os.getpid()} on ", 1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "target"]
