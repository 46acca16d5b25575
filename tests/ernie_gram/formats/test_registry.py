"""Folders of any format are found by looking; what is wrong with a folder is one line, and nothing is half-written."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from ernie_gram.formats.registry import read_model, write_model
from ernie_gram.run import checkpoint
from reader.errors import InputError
from reader.lexicon.lexicon_file import Lexicon, info_path
from reader.system.atomic_files import sha256_of
from tests.support.model_folders import random_model

CONFIG, WEIGHTS, VOCABULARY = "ernie_config.json", "model.safetensors", "vocab.txt"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of ours with a small model and a head over tokens."""
    write_model(random_model(with_head=True), tmp_path / "model", "ernie_gram")
    return tmp_path / "model"


def test_a_runs_folder_and_its_checkpoints_convert_to_our_folder_and_back_to_the_same_model(
    finished: Path, tmp_path: Path
) -> None:
    for path in (finished, finished / "step_24"):
        model = read_model(path)
        assert (model.format, model.source) == ("run", finished / "step_24")
        target = tmp_path / path.name
        assert write_model(model, target, "ernie_gram") == []
        found = read_model(target)
        assert replace(found.config, vocab_size=None) == replace(model.config, vocab_size=None)
        np.testing.assert_equal(found.parameters, checkpoint.load_model(finished / "step_24"))
        assert found.vocabulary.fingerprint == model.vocabulary.fingerprint
        assert found.lexicon.fingerprint == Lexicon.load(finished / "lexicon.tsv").fingerprint
        assert found.pretraining == model.pretraining
        assert model.pretraining.keys() == {"data", "objective", "generator"}
        # Paths of this machine do not belong in a folder that is passed on.
        assert all(str(finished.parent) not in (target / name).read_text() for name in (CONFIG, "README.md"))
        assert model.training.scores["step"] == 24
        state = json.loads((finished / "step_24" / "state.json").read_text())
        assert model.training.corpus == Path(state["config"]["paths"]["corpus"]).name
        assert model.training.settings.keys() == {"seed", "optimizer", "trainer"}
    (target / VOCABULARY).unlink()
    with pytest.raises(InputError, match=r"has no vocabulary; put the model's vocab\.txt or spm\.model there"):
        read_model(target)


@pytest.mark.parametrize("name", ["model.safetensors", "state.json", "checksums.json"])
def test_a_damaged_checkpoint_is_named_with_the_damage(name: str, run_copy: Path) -> None:
    damaged = run_copy / "step_24" / name
    damaged.write_bytes(damaged.read_bytes()[:50])
    model = read_model(run_copy)
    assert model.source == run_copy / "step_20"
    (note,) = model.notes
    assert note.startswith(f"{damaged}: ")
    with pytest.raises(InputError, match=rf"^{damaged}: .*give {run_copy / 'step_20'} instead"):
        read_model(run_copy / "step_24")
    for step in ("step_16", "step_20"):
        shutil.rmtree(run_copy / step)
    for folder in (run_copy, run_copy / "step_24"):
        with pytest.raises(InputError, match=f"^{damaged}: .*no valid checkpoint"):
            read_model(folder)


def with_new_sum(path: Path) -> None:
    """Make a changed file of a checkpoint one of strangers: it has its own sum."""
    sums = json.loads((path.parent / "checksums.json").read_text())
    (path.parent / "checksums.json").write_text(json.dumps(sums | {path.name: sha256_of(path)}))


@pytest.mark.parametrize(
    ("spoil", "key"),
    [
        (lambda state: state.pop("identity"), "identity"),
        (lambda state: state.update(config=5), "config"),
        (lambda state: state.update(step="9"), "step"),
        (lambda state: state["config"].pop("model"), "model"),
        (lambda state: state["config"].update(objective=3), "objective"),
        (lambda state: state["config"].update(paths=None), "paths"),
        (lambda state: state["identity"].pop("vocabulary"), "vocabulary"),
        (None, "model.safetensors"),
    ],
)
def test_a_checkpoint_from_strangers_is_refused_in_one_line(
    spoil: Callable[[dict[str, Any]], object] | None, key: str, run_copy: Path
) -> None:
    step = run_copy / "step_24"
    if spoil is None:
        (step / WEIGHTS).write_bytes(b"no model" * 9)
        with_new_sum(step / WEIGHTS)
    else:
        spoil(state := json.loads((step / "state.json").read_text()))
        (step / "state.json").write_text(json.dumps(state))
        with_new_sum(step / "state.json")
    with pytest.raises(InputError, match=key):
        read_model(step)


def test_other_users_can_read_what_was_written(folder: Path, finished: Path, tmp_path: Path) -> None:
    (tmp_path / "usual").touch()
    usual = (tmp_path / "usual").stat().st_mode
    assert {path.stat().st_mode for path in (*folder.iterdir(), *(finished / "step_24").iterdir())} == {usual}


def test_scores_of_a_later_evaluation_are_of_other_parameters(run_copy: Path) -> None:
    with (run_copy / "log.jsonl").open("a") as log:
        log.write(json.dumps({"kind": "eval", "step": 30, "perplexity": 1.0}) + "\n")
    assert read_model(run_copy).training.scores["perplexity"] != 1.0


def test_a_folder_without_a_format_or_with_several_is_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=f"^{tmp_path / 'empty'}: "):
        read_model(tmp_path / "empty")
    (tmp_path / "empty" / "config.json").write_text('{"model_type": "roberta"}')
    with pytest.raises(InputError, match="roberta"):
        read_model(tmp_path / "empty")
    (folder / "saved_weights.pdparams").touch()
    with pytest.raises(InputError, match=r"ernie_gram .*upstream_dygraph"):
        read_model(folder)
    for path in (tmp_path / "absent", folder / VOCABULARY):
        with pytest.raises(InputError, match=f"^{path}: .*hf download"):
            read_model(path)
    (tmp_path / "step_20").mkdir()
    with pytest.raises(InputError, match=rf"^{tmp_path}/step_30: no such folder; there are step_20$"):
        read_model(tmp_path / "step_30")
    (tmp_path / "empty" / "onnx.json").write_text("{}")
    with pytest.raises(InputError, match=r"empty: is a model in ONNX; give the model that it was made from$"):
        read_model(tmp_path / "empty")


def edit_config(folder: Path, **changes: object) -> None:
    path = folder / CONFIG
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def edit_weights(folder: Path, **changes: np.ndarray | None) -> None:
    arrays = {**load_file(folder / WEIGHTS), **changes}
    save_file({name: values for name, values in arrays.items() if values is not None}, folder / WEIGHTS)


def add_lexicon_of_another_vocabulary(folder: Path) -> None:
    path = folder / "lexicon.tsv"
    path.write_text("ngram\tcount\tt\nthe cat\t3\t1.5\n")
    info = {"vocabulary": "another", "han": "char", "text": "", "totals": {}, "top": {}, "max_ngram_tokens": 8}
    info_path(path).write_text(json.dumps(info | {"left_out": 0, "min_count": 1, "sha256": sha256_of(path)}))


SCALE = "pre_encoder_layer_norm_scale"
SPOILED: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing": (lambda folder: edit_weights(folder, **{SCALE: None}), f"{WEIGHTS}: {SCALE} missing"),
    "truncated": (lambda folder: os.truncate(folder / WEIGHTS, 500), f"{WEIGHTS}: "),
    "settings": (lambda folder: edit_config(folder, num_hidden_layers=3), "missing; a model with these settings has"),
    "no size": (lambda folder: edit_config(folder, vocab_size=None), f"{CONFIG}: vocab_size: missing"),
    "huge": (lambda folder: edit_config(folder, vocab_size=10**12), "word_embedding has shape [20, 16]"),
    "type": (lambda folder: edit_config(folder, hidden_size=True), f"{CONFIG}: hidden_size: "),
    "lower case": (lambda folder: edit_config(folder, do_lower_case=1), f"{CONFIG}: do_lower_case: "),
    "sections": (lambda folder: edit_config(folder, pretraining={"data": 3}), f"{CONFIG}: pretraining: "),
    "no section": (lambda folder: edit_config(folder, pretraining=[1]), f"{CONFIG}: pretraining: "),
    "json": (
        lambda folder: (folder / CONFIG).write_text("{"),
        f"{CONFIG}: Expecting property name enclosed in double quotes: line 1 column 2",
    ),
    "vocabulary": (
        lambda folder: (folder / VOCABULARY).write_text((folder / VOCABULARY).read_text() + "more\n"),
        f"{VOCABULARY}: 21 tokens",
    ),
    "lexicon": (add_lexicon_of_another_vocabulary, "lexicon.tsv: "),
}


@pytest.mark.parametrize("case", SPOILED)
def test_a_damaged_folder_is_refused_in_one_line_that_names_the_file(case: str, folder: Path) -> None:
    spoil, message = SPOILED[case]
    spoil(folder)
    with pytest.raises(InputError) as caught:
        read_model(folder)
    assert message in str(caught.value)
    assert str(caught.value).startswith(str(folder))
    assert "\n" not in str(caught.value)


def test_weights_in_several_files_are_refused_with_the_file_that_lists_them(tmp_path: Path) -> None:
    write_model(random_model(use_relative_position=False), tmp_path / "model", "bert")
    (tmp_path / "model" / "model.safetensors.index.json").write_text("{}")
    # Beside a whole file, a list of others is nothing to care about.
    assert read_model(tmp_path / "model").format == "bert"
    (tmp_path / "model" / "model.safetensors").unlink()
    with pytest.raises(InputError, match=f"^{tmp_path}/model/model.safetensors.index.json: .*max_shard_size"):
        read_model(tmp_path / "model")


def test_an_existing_target_is_refused_and_a_failed_write_leaves_nothing(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, before = read_model(folder), {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(InputError, match="exists already"):
        write_model(model, folder, "ernie_gram")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    with pytest.raises(InputError, match="format run: "):
        write_model(model, tmp_path / "new", "run")
    failure = Mock(side_effect=OSError(28, "No space left on device"))
    monkeypatch.setattr("ernie_gram.formats.ours.save_vocabulary", failure)
    with pytest.raises(InputError, match="new: could not be written: No space left"):
        write_model(model, tmp_path / "new", "ernie_gram")
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
