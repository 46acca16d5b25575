"""The check of parameters: expected names and shapes, and one line for each way in which a file can be wrong."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from ernie_gram.formats.registry import read_model
from reader.errors import InputError
from tests.ernie_gram.formats.test_bert import BERT, HIDDEN, INNER, bert_folder

QUERY = "bert.encoder.layer.1.attention.self.query.weight"
WIDE = "bert.encoder.layer.0.intermediate.dense.weight"
NAN = np.array([np.nan] * HIDDEN, np.float32)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({QUERY: None}, QUERY[5:]),
        ({QUERY: None, QUERY.replace("weight", "bias"): None}, f"{QUERY[5:]}, {QUERY[5:-6]}bias"),
        ({"bert.encoder.layer.2.output.dense.bias": NAN}, "bert.encoder.layer.2.output.dense.bias"),
        # The transposed shape, as in a file of Paddle.
        ({WIDE: np.zeros((HIDDEN, INNER), np.float32)}, f"{WIDE} has shape [{HIDDEN}, {INNER}]"),
        ({QUERY: np.zeros((HIDDEN, HIDDEN), np.int64)}, f"{QUERY} holds int64"),
        ({"bert.embeddings.LayerNorm.bias": NAN}, "bert.embeddings.LayerNorm.bias"),
        ({"cls.predictions.bias": None}, "cls.predictions.bias"),
        ({"embeddings.LayerNorm.bias": NAN}, "are the same parameter"),
    ],
)
def test_parameters_that_do_not_fit_are_refused_in_one_line_that_names_them(
    changes: dict[str, np.ndarray | None], message: str, tmp_path: Path
) -> None:
    arrays = {name: values for name, values in {**BERT, **changes}.items() if values is not None}
    folder = bert_folder(tmp_path / "bert", arrays)
    with pytest.raises(InputError, match=rf"^{folder / 'model.safetensors'}: .*{re.escape(message)}"):
        read_model(folder)


def test_half_precision_is_read_and_ignored_parameters_are_said(tmp_path: Path) -> None:
    half = np.arange(HIDDEN**2).reshape(HIDDEN, HIDDEN).astype(np.float16)
    encoder = {name: values for name, values in BERT.items() if name.startswith("bert.")}
    ignored = {"cls.seq_relationship.bias": NAN[:2], "classifier.bias": NAN[:2]}
    model = read_model(bert_folder(tmp_path / "bert", {**encoder, **ignored, QUERY: half}))
    name = "encoder_layer_1_multi_head_att_query_fc.w_0"
    assert np.array_equal(model.parameters[name], half.T.astype(np.float32))
    assert model.parameters[name].dtype == np.float32
    (note,) = model.notes
    assert all(
        name in note for name in ("bert.embeddings.position_ids", "cls.seq_relationship.bias", "classifier.bias")
    )
    assert "mask_lm_out_fc.b_0" not in model.parameters
