"""The table of parameter names: complete, unique in both directions, and right about orientation."""

from __future__ import annotations

import numpy as np
import pytest

from ernie_gram.formats.names import Column, from_ours, names, renaming, rows, to_ours
from reader.errors import InputError
from tests.support.expected_parameters import ALWAYS, RELATIVE, TIED

COLUMNS: tuple[Column, ...] = ("static", "dygraph", "paddlenlp", "bert")
POOLER = ["pooled_fc.w_0", "pooled_fc.b_0"]
MAPPING = ["emb_hidden_mapping", "emb_hidden_mapping_bias"]
ENCODER = [*ALWAYS, *RELATIVE, *MAPPING, "sent_embedding"]
HEAD = [name for name in TIED if name != "ngram_embedding"]


def test_the_table_has_every_parameter_of_the_encoder_the_pooler_and_the_tied_head_once() -> None:
    ours = [row[0] for row in rows(2)]
    assert sorted(ours) == sorted([*ENCODER, *POOLER, *HEAD])


@pytest.mark.parametrize("column", COLUMNS)
def test_no_two_parameters_have_the_same_name_in_a_column(column: Column) -> None:
    theirs = names(column, 12)
    assert len(set(theirs.values())) == len(theirs)
    missing = {"static": [], "dygraph": MAPPING, "paddlenlp": MAPPING + HEAD, "bert": [*MAPPING, *RELATIVE]}[column]
    assert {*ENCODER, *POOLER, *HEAD} - names(column, 2).keys() == set(missing)


@pytest.mark.parametrize(
    ("ours", "dygraph", "paddlenlp", "bert"),
    [
        (
            "encoder_layer_11_multi_head_att_output_fc.w_0",
            "encoder_stack.block.11.attn.o.weight",
            "encoder.layers.11.self_attn.out_proj.weight",
            "encoder.layer.11.attention.output.dense.weight",
        ),
        (
            "encoder_layer_3_post_ffn_layer_norm_bias",
            "encoder_stack.block.3.ln2.bias",
            "encoder.layers.3.norm2.bias",
            "encoder.layer.3.output.LayerNorm.bias",
        ),
        (
            "pre_encoder_layer_norm_scale",
            "ln.weight",
            "embeddings.layer_norm.weight",
            "embeddings.LayerNorm.weight",
        ),
    ],
)
def test_a_row_has_the_names_of_the_released_models(ours: str, dygraph: str, paddlenlp: str, bert: str) -> None:
    assert [names(column, 12)[ours] for column in COLUMNS] == [ours, dygraph, paddlenlp, bert]


@pytest.mark.parametrize("with_prefix", [False, True])
@pytest.mark.parametrize("column", COLUMNS)
def test_arrays_keep_their_values_in_both_directions_and_only_berts_matrices_are_transposed(
    column: Column, with_prefix: bool
) -> None:
    random = np.random.default_rng(0)
    arrays = {
        name: random.standard_normal([2, 3] if name.endswith((".w_0", "embedding")) else [3]).astype("float32")
        for name in names(column, 2)
    }
    theirs = from_ours(arrays, column, 2, with_prefix)
    for name, bare in names(column, 2).items():
        (stored,) = (theirs[other] for other in (bare, f"bert.{bare}", f"ernie_gram.{bare}") if other in theirs)
        is_turned = column == "bert" and name.endswith(".w_0")
        assert np.array_equal(stored, arrays[name].T if is_turned else arrays[name]), name
    found = renaming(theirs, column, 2, "file")
    assert (found.ignored, found.unknown, found.copies) == ({}, [], {})
    back = to_ours(theirs, column, found)
    assert back.keys() == arrays.keys()
    assert all(np.array_equal(back[name], values) for name, values in arrays.items())


def test_old_endings_heads_of_tasks_buffers_copies_and_unknown_names_are_told_apart() -> None:
    given = [
        "bert.embeddings.LayerNorm.gamma",
        "bert.embeddings.word_embeddings.weight",
        "bert.embeddings.position_ids",
        "cls.seq_relationship.weight",
        "cls.predictions.decoder.weight",
        "cls.predictions.decoder.bias",
        "classifier.bias",
        "bert.encoder.layer.2.output.dense.bias",  # a layer too many
    ]
    found = renaming(given, "bert", 2, "file")
    assert found.ours == {
        "bert.embeddings.LayerNorm.gamma": "pre_encoder_layer_norm_scale",
        "bert.embeddings.word_embeddings.weight": "word_embedding",
        # A file may have this copy only.
        "cls.predictions.decoder.bias": "mask_lm_out_fc.b_0",
    }
    assert found.copies == {"cls.predictions.decoder.weight": "word_embedding"}
    assert found.ignored == {
        "bert.embeddings.position_ids": "a constant",
        "cls.seq_relationship.weight": "the head for sentence pairs",
        "classifier.bias": "the head of a task",
    }
    assert found.unknown == ["bert.encoder.layer.2.output.dense.bias"]


def test_a_parameter_under_two_names_is_an_error() -> None:
    with pytest.raises(InputError, match=r"^file: bert\..* and embeddings\.LayerNorm\.gamma are the same"):
        renaming(["bert.embeddings.LayerNorm.weight", "embeddings.LayerNorm.gamma"], "bert", 2, "file")
