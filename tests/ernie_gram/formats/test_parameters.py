"""The check of parameters: expected names and shapes, and one line for each way in which a file can be wrong."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import numpy as np
import pytest

from ernie_gram.formats.heads import read_foreign
from ernie_gram.formats.model import ModelRecord
from ernie_gram.formats.names import from_ours
from ernie_gram.formats.parameters import encoder_shapes, head_shapes, settings_of
from ernie_gram.run.checkpoint import save_safetensors
from reader.errors import InputError
from tests.support import model_folders
from tests.support.model_folders import VOCABULARY, random_arrays

CONFIG = dataclasses.replace(model_folders.CONFIG, use_relative_position=False)


def bert_file(path: Path, with_head: bool = True, **changes: np.ndarray | None) -> Path:
    """Write a BERT of the size of CONFIG; `changes` holds arrays to put in under its names, or None to remove one."""
    config = dataclasses.replace(CONFIG, use_sentence_embedding=True, out_emb_size=0)
    arrays = random_arrays(encoder_shapes(config) | (head_shapes(config, len(VOCABULARY)) if with_head else {}))
    theirs = from_ours(arrays, "bert", 2, with_prefix=True)
    for name, values in changes.items():
        if values is None:
            del theirs[name]
        else:
            theirs[name] = values
    save_safetensors(path, theirs)
    return path


def read(path: Path, use_sentence_embedding: bool = True) -> ModelRecord:
    config = dataclasses.replace(CONFIG, use_sentence_embedding=use_sentence_embedding)
    return read_foreign("bert", path, "bert", settings_of(config), "config.json", VOCABULARY)


QUERY = "bert.encoder.layer.1.attention.self.query.weight"
WIDE = "bert.encoder.layer.0.intermediate.dense.weight"
NAN = np.array([np.nan] * 16, np.float32)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({QUERY: None}, QUERY[5:]),
        ({QUERY: None, QUERY.replace("weight", "bias"): None}, f"{QUERY[5:]}, {QUERY[5:-6]}bias"),
        ({"bert.encoder.layer.2.output.dense.bias": NAN}, "bert.encoder.layer.2.output.dense.bias"),
        # The transposed shape, as in a file of Paddle.
        ({WIDE: np.zeros((16, 64), np.float32)}, f"{WIDE} has shape [16, 64]"),
        ({QUERY: np.zeros((16, 16), np.int64)}, f"{QUERY} holds int64"),
        ({"bert.embeddings.LayerNorm.bias": NAN}, "bert.embeddings.LayerNorm.bias"),
        ({"cls.predictions.bias": None}, "cls.predictions.bias"),
        ({"embeddings.LayerNorm.bias": NAN}, "are the same parameter"),
    ],
)
def test_parameters_that_do_not_fit_are_refused_in_one_line_that_names_them(
    changes: dict[str, np.ndarray | None], message: str, tmp_path: Path
) -> None:
    path = bert_file(tmp_path / "model.safetensors", **changes)
    with pytest.raises(InputError, match=rf"^{path}: .*{re.escape(message)}"):
        read(path)


def test_half_precision_and_ignored_parameters_are_read_and_said(tmp_path: Path) -> None:
    half = np.arange(256).reshape(16, 16).astype(np.float16)
    path = bert_file(
        tmp_path / "model.safetensors",
        with_head=False,
        **{QUERY: half, "bert.embeddings.position_ids": np.arange(16), "cls.seq_relationship.bias": NAN[:2]},
        **{"classifier.bias": NAN[:2]},
    )
    loaded = read(path)
    name = "encoder_layer_1_multi_head_att_query_fc.w_0"
    assert np.array_equal(loaded.parameters[name], half.T.astype(np.float32))
    assert loaded.parameters[name].dtype == np.float32
    assert any("1 of" in note and "float16" in note for note in loaded.notes)
    assert any("bert.embeddings.position_ids" in note for note in loaded.notes)
    assert any("cls.seq_relationship.bias: the head for sentence pairs" in note for note in loaded.notes)
    assert any("classifier.bias: the head of a task" in note for note in loaded.notes)
    assert "mask_lm_out_fc.b_0" not in loaded.parameters


def test_a_table_that_another_program_trained_is_read_although_the_settings_say_otherwise(tmp_path: Path) -> None:
    path = bert_file(tmp_path / "model.safetensors")
    loaded = read(path, use_sentence_embedding=False)
    assert loaded.config.use_sentence_embedding
    assert any("sent_embedding is not zero" in note for note in loaded.notes)
