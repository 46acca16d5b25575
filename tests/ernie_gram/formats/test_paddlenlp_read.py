"""Folders of PaddleNLP, read without PaddleNLP. tests/hub checks them with PaddleNLP."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from ernie_gram.formats import paddlenlp
from reader.errors import InputError
from tests.ernie_gram.formats.test_paddlenlp import (
    PLAIN,
    RELATIVE,
    SEGMENTS,
    TABLE,
    VOCABULARY,
    change_json,
    model_of,
    written,
)


@pytest.mark.parametrize("weights", ["model.safetensors", "model_state.pdparams"])
@pytest.mark.parametrize(
    "changes", [{}, {"use_sentence_embedding": False, "use_pooler": False}, {"intermediate_size": 24}]
)
def test_an_export_is_read_as_the_model_that_it_was(tmp_path: Path, changes: dict[str, Any], weights: str) -> None:
    model = model_of(dataclasses.replace(PLAIN, **changes))
    folder = written(tmp_path / "export", model)
    assert paddlenlp.detect(folder)
    if weights == "model_state.pdparams":
        (folder / "model.safetensors").unlink()
    read = paddlenlp.read(folder)
    assert read.config == model.config
    assert set(read.parameters) == set(model.parameters)
    for name, values in model.parameters.items():
        assert np.array_equal(read.parameters[name], values)
    assert read.vocabulary.fingerprint == VOCABULARY.fingerprint


def test_segments_of_an_export_that_were_trained_in_paddlenlp_are_read(tmp_path: Path) -> None:
    folder = written(tmp_path / "export", model_of(dataclasses.replace(PLAIN, use_sentence_embedding=False)))
    arrays = load_file(folder / "model.safetensors")
    arrays[SEGMENTS][1, 3] = 0.5
    save_file(arrays, folder / "model.safetensors")
    read = paddlenlp.read(folder)
    assert read.config == PLAIN
    assert np.array_equal(read.parameters["sent_embedding"], arrays[SEGMENTS])


def test_a_table_of_relative_position_is_applied_only_if_asked_for(tmp_path: Path) -> None:
    model = model_of(RELATIVE)
    folder = written(tmp_path / "export", model)
    assert np.array_equal(load_file(folder / "model.safetensors")[TABLE], model.parameters["rel_pos_embedding"])
    read = paddlenlp.read(folder)
    assert read.config == PLAIN
    assert "rel_pos_embedding" not in read.parameters
    assert any("left out rel_pos_embedding" in note for note in read.notes)
    change_json(folder / "config.json", use_relative_position=True)
    read = paddlenlp.read(folder)
    assert np.array_equal(read.parameters["rel_pos_embedding"], model.parameters["rel_pos_embedding"])


def test_the_older_config_with_nested_settings_is_read(tmp_path: Path) -> None:
    model = model_of()
    folder = written(tmp_path / "export", model)
    content = json.loads((folder / "config.json").read_text())
    (folder / "config.json").unlink()
    (folder / "model.safetensors").unlink()
    nested = {key: content[key] for key in content if key not in ("architectures", "num_hidden_layers")}
    init_args = [nested | {"init_class": "ErnieGramModel"}, {"num_hidden_layers": 1}]
    old = {"init_class": "ErnieGramForTokenClassification", "init_args": init_args}
    (folder / "model_config.json").write_text(json.dumps(old))
    assert paddlenlp.detect(folder)
    assert paddlenlp.read(folder).config == PLAIN


@pytest.mark.parametrize("family", ["bert", "ernie"])
def test_encoders_of_paddlenlps_bert_and_ernie_are_read(tmp_path: Path, family: str) -> None:
    model = model_of()
    folder = written(tmp_path / "export", model)
    renamed = {
        name.replace("ernie_gram.", f"{family}."): values
        for name, values in load_file(folder / "model.safetensors").items()
    }
    save_file(renamed | {"cls.predictions.layer_norm.bias": np.ones(16, np.float32)}, folder / "model.safetensors")
    change_json(folder / "config.json", architectures=[f"{family.title()}ForMaskedLM"], layer_norm_eps=1e-6)
    read = paddlenlp.read(folder)
    # PaddleNLP's Ernie ignores layer_norm_eps.
    assert read.config == dataclasses.replace(PLAIN, layer_norm_eps=1e-6 if family == "bert" else 1e-12)
    assert np.array_equal(read.parameters["pooled_fc.w_0"], model.parameters["pooled_fc.w_0"])
    assert any("cls.predictions.layer_norm.bias" in note for note in read.notes)
    (folder / "model_state.pdparams").unlink()
    assert paddlenlp.detect(folder)
    content = json.loads((folder / "config.json").read_text())
    del content["paddlenlp_version"]
    (folder / "config.json").write_text(json.dumps(content))
    assert not paddlenlp.detect(folder)  # a folder of transformers


@pytest.mark.parametrize(
    "change",
    [
        *({"architectures": ["GPTModel"]}, {"architectures": []}, {"embedding_size": 8}, {"hidden_size": "wide"}),
        *({"num_hidden_layers": 2}, {"use_relative_position": True}, {"use_relative_position": 1}),
        *({"pool_act": "relu", "architectures": ["BertModel"]}, {"use_task_id": True, "architectures": ["ErnieModel"]}),
    ],
    ids=str,
)
def test_a_folder_that_cannot_be_read_is_refused_in_one_line(tmp_path: Path, change: dict[str, Any]) -> None:
    folder = written(tmp_path / "export", model_of())
    change_json(folder / "config.json", **change)
    with pytest.raises(InputError) as error:
        paddlenlp.read(folder)
    named = {"num_hidden_layers": "missing", "use_relative_position": "use_relative_position|rel_pos_embeddings"}
    assert re.search(named.get(key := next(iter(change)), key), str(error.value))
    assert "\n" not in str(error.value)
    assert str(folder) in str(error.value)
