"""Upstream's layouts against a forward pass in numpy."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ernie_gram.formats.model import ModelRecord
from ernie_gram.formats.registry import read_model
from reader.errors import InputError
from tests.ernie_gram.formats.untrusted.test_paddle_files import write_paddle_variable
from tests.support import reference_model as reference
from tests.support.model_folders import VOCABULARY, encoder_output, random_ids

L, H, A, TOKENS, LENGTH = 2, 16, 4, len(VOCABULARY), 24
# As in upstream's released files.
CONFIG: dict[str, Any] = {
    "attention_probs_dropout_prob": 0.1,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "hidden_size": H,
    "initializer_range": 0.02,
    "max_position_embeddings": LENGTH,
    "num_attention_heads": A,
    "num_hidden_layers": L,
    "sent_type_vocab_size": 2,
    "task_type_vocab_size": 3,
    "vocab_size": TOKENS,
}
NUMBERS = np.random.default_rng(5)


def numbers(*shape: int) -> np.ndarray:
    return (0.3 * NUMBERS.standard_normal(shape)).astype("float32")


STATIC: dict[str, np.ndarray] = {}
DYGRAPH: dict[str, np.ndarray] = {}


def add(static: str, dygraph: str, *shape: int) -> None:
    STATIC[static] = numbers(*shape)
    if dygraph:
        DYGRAPH[dygraph] = STATIC[static]


def add_linear(static: str, dygraph: str, rows: int, columns: int) -> None:
    add(f"{static}.w_0", dygraph and f"{dygraph}.weight", rows, columns)
    add(f"{static}.b_0", dygraph and f"{dygraph}.bias", columns)


def add_norm(static: str, dygraph: str) -> None:
    add(f"{static}_scale", f"{dygraph}.weight", H)
    add(f"{static}_bias", f"{dygraph}.bias", H)


add("word_embedding", "word_emb.weight", TOKENS, H)
add("pos_embedding", "pos_emb.weight", LENGTH, H)
add("sent_embedding", "sent_emb.weight", 2, H)
add("rel_pos_embedding", "rel_pos_bias_emb.weight", 33, A)
add_norm("pre_encoder_layer_norm", "ln")
add_linear("pooled_fc", "pooler", H, H)
add_linear("mask_lm_trans_fc", "", H, 128)
for i in range(L):
    layer, block = f"encoder_layer_{i}", f"encoder_stack.block.{i}"
    for part in ("query", "key", "value", "output"):
        add_linear(f"{layer}_multi_head_att_{part}_fc", f"{block}.attn.{part[0]}", H, H)
    add_norm(f"{layer}_post_att_layer_norm", f"{block}.ln1")
    add_linear(f"{layer}_ffn_fc_0", f"{block}.ffn.i", H, 4 * H)
    add_linear(f"{layer}_ffn_fc_1", f"{block}.ffn.o", 4 * H, H)
    add_norm(f"{layer}_post_ffn_layer_norm", f"{block}.ln2")


def write_common(folder: Path, **changes: Any) -> Path:
    folder.mkdir()
    (folder / "ernie_config.json").write_text(json.dumps(CONFIG | changes))
    # Upstream's Chinese vocabulary has token<TAB>id.
    (folder / "vocab.txt").write_text("".join(f"{token}\t{i}\n" for i, token in enumerate(VOCABULARY.tokens)))
    return folder


def static_folder(folder: Path, **changes: Any) -> Path:
    (write_common(folder, **changes) / "params").mkdir()
    for name, values in STATIC.items():
        write_paddle_variable(folder / "params" / name, values)
    return folder


def dygraph_folder(folder: Path, head: dict[str, np.ndarray] | None = None, **changes: Any) -> Path:
    write_common(folder, **changes)
    with (folder / "saved_weights.pdparams").open("wb") as file:
        pickle.dump(
            {**DYGRAPH, **(head or {}), "StructuredToParameterName@@": {name: name for name in DYGRAPH}},
            file,
            protocol=2,
        )
    return folder


def assert_equals_the_reference(model: ModelRecord) -> None:
    ids, lengths, sentences = random_ids()
    doubles = {name: values.astype(np.float64) for name, values in model.parameters.items()}
    found = encoder_output(model.config, model.parameters)
    for row, length in enumerate(lengths):
        words = doubles["word_embedding"][ids[row, :length]]
        expected, _ = reference.encode(model.config, doubles, words, sentences[row, :length], [])
        np.testing.assert_allclose(found[row], expected, atol=1e-5)
        pooled = np.tanh(expected[0] @ doubles["pooled_fc.w_0"] + doubles["pooled_fc.b_0"])
        np.testing.assert_allclose(found[-1][row], pooled, atol=1e-5)


@pytest.mark.parametrize("reads_sentences", [None, True])
def test_the_static_layout_is_read_and_computes_upstreams_forward_pass(
    reads_sentences: bool | None, tmp_path: Path
) -> None:
    changes = {} if reads_sentences is None else {"use_sentence_embedding": reads_sentences}
    model = read_model(static_folder(tmp_path / "static", **changes))
    assert (model.format, model.config.use_relative_position, model.config.use_pooler) == (
        "upstream_static",
        True,
        True,
    )
    assert model.vocabulary.fingerprint == VOCABULARY.fingerprint
    dropped = set() if reads_sentences else {"sent_embedding"}
    np.testing.assert_equal(model.parameters, {name: values for name, values in STATIC.items() if name not in dropped})
    assert any("left out sent_embedding" in note for note in model.notes) == bool(dropped)
    assert_equals_the_reference(model)


@pytest.mark.parametrize("relative", [None, 33])
def test_the_dygraph_layout_is_read_and_computes_upstreams_forward_pass(relative: int | None, tmp_path: Path) -> None:
    # Upstream's code does not read the epsilon.
    model = read_model(dygraph_folder(tmp_path / "dygraph", rel_pos_size=relative, layer_norm_eps=0.5))
    assert (model.format, model.config.use_sentence_embedding) == ("upstream_dygraph", True)
    assert model.config.use_relative_position == bool(relative)
    # Segments are always added, without a note.
    assert not any("sent_embedding" in note for note in model.notes)
    # The dygraph model has no transform for heads.
    left_out = {"mask_lm_trans_fc.w_0", "mask_lm_trans_fc.b_0", *([] if relative else ["rel_pos_embedding"])}
    np.testing.assert_equal(model.parameters, {name: values for name, values in STATIC.items() if name not in left_out})
    assert_equals_the_reference(model)


def test_the_head_over_tokens_of_the_dygraph_layout_is_read(tmp_path: Path) -> None:
    names = ("trans_fc.w_0", "trans_fc.b_0", "trans_layer_norm_scale", "trans_layer_norm_bias", "out_fc.b_0")
    head = {"mlm.weight": (H, H), "mlm.bias": (H,), "mlm_ln.weight": (H,), "mlm_ln.bias": (H,), "mlm_bias": (TOKENS,)}
    arrays = {name: numbers(*shape) for name, shape in head.items()}
    model = read_model(dygraph_folder(tmp_path / "dygraph", arrays))
    for ours, values in zip(names, arrays.values(), strict=True):
        np.testing.assert_array_equal(model.parameters[f"mask_lm_{ours}"], values)
    assert model.pretraining is not None
    assert model.config.out_emb_size == 0
    for count in (TOKENS - 1, TOKENS + 1):
        with pytest.raises(InputError, match=f"head has {count} classes, but the vocabulary {TOKENS} tokens"):
            read_model(dygraph_folder(tmp_path / f"{count}", arrays | {"mlm_bias": numbers(count)}))


def test_the_state_of_the_optimizer_beside_the_parameters_is_left_out_with_a_note(tmp_path: Path) -> None:
    """Upstream's training saves all its variables into `params/`."""
    folder = static_folder(tmp_path / "static")
    names = [f"{name}{ending}" for name in STATIC for ending in ("_moment1_0", "_moment2_0", "_beta1_pow_acc_0")]
    for name in (*names, "scheduled_learning_rate"):
        write_paddle_variable(folder / "params" / name, np.ones(1, np.float32))
    model = read_model(folder)
    np.testing.assert_equal(model.parameters, {name: STATIC[name] for name in STATIC.keys() - {"sent_embedding"}})
    assert any("scheduled_learning_rate" in note or "_moment1_0" in note for note in model.notes)


def test_a_layout_without_its_settings_or_with_others_is_refused(tmp_path: Path) -> None:
    folder = static_folder(tmp_path / "static")
    for name, message in (("params/word_embedding", "word_embedding missing"), ("ernie_config.json", "static: ")):
        (folder / name).unlink()
        with pytest.raises(InputError, match=message):
            read_model(folder)
    for changes, message in (({"use_task_id": True}, "use_task_id"), ({"sent_type_vocab_size": 4}, r"\[4, 16\]")):
        with pytest.raises(InputError, match=message):
            read_model(dygraph_folder(tmp_path / next(iter(changes)), **changes))
