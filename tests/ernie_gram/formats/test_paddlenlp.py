"""Folders of PaddleNLP, written and read without PaddleNLP. tests/hub checks them with PaddleNLP."""

from __future__ import annotations

import dataclasses
import json
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from ernie_gram.formats import bert, paddlenlp
from ernie_gram.formats.model import ModelRecord
from ernie_gram.formats.paddlenlp import TaskHead
from ernie_gram.formats.parameters import encoder_shapes
from ernie_gram.formats.registry import read_model
from ernie_gram.model.config import ModelConfig
from ernie_gram.model.exact_relative_position import attention_mask
from reader.errors import InputError
from reader.tokenization.vocabulary import SPECIAL_TOKENS
from reader.tokenization.wordpiece import WordPieceVocabulary
from tests.support.commands import ROOT
from tests.support.model_folders import CONFIG, random_arrays
from tests.support.reference_model import bucket

VOCABULARY = WordPieceVocabulary(["the", *SPECIAL_TOKENS, "a", "##b"], lowercase=False)
PLAIN = dataclasses.replace(
    CONFIG,
    vocab_size=10,
    num_hidden_layers=1,
    use_relative_position=False,
    use_sentence_embedding=True,
    use_pooler=True,
)
RELATIVE = dataclasses.replace(PLAIN, use_relative_position=True)
# The names of PaddleNLP's ErnieGramModel with one layer, and ours.
LINEAR = {
    "pooler.dense": "pooled_fc",
    "encoder.layers.0.self_attn.q_proj": "encoder_layer_0_multi_head_att_query_fc",
    "encoder.layers.0.self_attn.k_proj": "encoder_layer_0_multi_head_att_key_fc",
    "encoder.layers.0.self_attn.v_proj": "encoder_layer_0_multi_head_att_value_fc",
    "encoder.layers.0.self_attn.out_proj": "encoder_layer_0_multi_head_att_output_fc",
    "encoder.layers.0.linear1": "encoder_layer_0_ffn_fc_0",
    "encoder.layers.0.linear2": "encoder_layer_0_ffn_fc_1",
}
NORMS = {
    "embeddings.layer_norm": "pre_encoder_layer_norm",
    "encoder.layers.0.norm1": "encoder_layer_0_post_att_layer_norm",
    "encoder.layers.0.norm2": "encoder_layer_0_post_ffn_layer_norm",
}
TABLE = "embeddings.rel_pos_embeddings.weight"
SEGMENTS = "embeddings.token_type_embeddings.weight"
NAMES = {
    "embeddings.word_embeddings.weight": "word_embedding",
    "embeddings.position_embeddings.weight": "pos_embedding",
    SEGMENTS: "sent_embedding",
    **{f"{theirs}.weight": f"{ours}.w_0" for theirs, ours in LINEAR.items()},
    **{f"{theirs}.bias": f"{ours}.b_0" for theirs, ours in LINEAR.items()},
    **{f"{theirs}.weight": f"{ours}_scale" for theirs, ours in NORMS.items()},
    **{f"{theirs}.bias": f"{ours}_bias" for theirs, ours in NORMS.items()},
}


def model_of(config: ModelConfig = PLAIN, **changes: Any) -> ModelRecord:
    model = ModelRecord(Path("source"), "test", config, random_arrays(encoder_shapes(config)), VOCABULARY)
    return dataclasses.replace(model, **changes)


def written(folder: Path, model: ModelRecord, head: TaskHead | None = None, **options: Any) -> Path:
    folder.mkdir()
    paddlenlp.write(model, folder, "published", head, **options)
    return folder


def change_json(path: Path, **changes: object) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_an_export_has_the_files_and_names_that_paddlenlp_reads(tmp_path: Path) -> None:
    model = model_of()
    folder = written(tmp_path / "export", model)
    assert {path.name for path in folder.iterdir()} == {
        *("config.json", "model.safetensors", "README.md"),
        *("vocab.txt", "tokenizer_config.json", "special_tokens_map.json"),
    }
    arrays = load_file(folder / "model.safetensors")
    np.testing.assert_equal(arrays, {name: model.parameters[ours] for name, ours in NAMES.items()})
    with safe_open(folder / "model.safetensors", "np") as file:
        assert file.metadata() == {"format": "np"}
    assert (folder / "vocab.txt").read_text().split() == VOCABULARY.tokens
    (folder / "model.safetensors").unlink()
    (folder / "model_state.pdparams").write_bytes(pickle.dumps(arrays, 4))
    read = paddlenlp.read(folder)
    assert read.config == model.config
    np.testing.assert_equal(read.parameters, model.parameters)


def test_the_card_and_the_page_name_the_versions_of_the_hub_test(tmp_path: Path) -> None:
    card = (written(tmp_path / "export", model_of()) / "README.md").read_text()
    [extra] = re.findall(r'"hub": \[(.*?)\],\n        "', (ROOT / "setup.py").read_text("utf-8"), re.DOTALL)
    pinned = set(re.findall(r'"([\w-]+==[\w.]+)"', extra))
    assert len(pinned) == 5
    for text in (card, (ROOT / "docs/models.md").read_text("utf-8")):
        assert pinned <= {*re.findall(r"[\w-]+==[\w.]+", text)}


def test_the_config_has_the_keys_of_ernie_gram_config(tmp_path: Path) -> None:
    config = dataclasses.replace(RELATIVE, intermediate_size=20, hidden_act="relu", hidden_dropout_prob=0.2)
    folder = written(tmp_path / "export", model_of(config))
    content = json.loads((folder / "config.json").read_text())
    assert content == {
        "architectures": ["ErnieGramModel"],
        "model_type": "ernie_gram",
        "paddlenlp_version": "3.0.0b4",
        "dtype": "float32",
        "vocab_size": 10,
        "embedding_size": 16,
        "hidden_size": 16,
        "intermediate_size": 20,
        "num_hidden_layers": 1,
        "num_attention_heads": 4,
        "max_position_embeddings": 24,
        "type_vocab_size": 2,
        "hidden_act": "relu",
        "hidden_dropout_prob": 0.2,
        "attention_probs_dropout_prob": 0.0,
        "initializer_range": 0.02,
        "pad_token_id": 1,
        "rel_pos_size": 33,
    }
    tokenizer = json.loads((folder / "tokenizer_config.json").read_text())
    assert tokenizer["tokenizer_class"] == "ErnieGramTokenizer"
    assert (tokenizer["do_lower_case"], tokenizer["model_max_length"]) == (False, 24)
    special = json.loads((folder / "special_tokens_map.json").read_text())
    assert special["mask_token"] == tokenizer["mask_token"] == "[MASK]"


def test_prediction_heads_are_a_loss_and_left_out(tmp_path: Path) -> None:
    """A relative position of zeros is none."""
    model = model_of(RELATIVE)
    model.parameters["rel_pos_embedding"][:] = 0
    assert paddlenlp.lost(model) == bert.lost(model) == []
    model.parameters["rel_pos_embedding"][0, 0] = 1
    assert "relative position" in paddlenlp.lost(model)[0]
    model = model_of()
    model.parameters["mask_lm_trans_fc.w_0"] = np.ones((16, 128), np.float32)
    model.parameters["ngram_embedding"] = np.ones((3, 16), np.float32)
    (reason,) = paddlenlp.lost(model)
    assert all(name in reason for name in ("mask_lm_trans_fc.w_0", "ngram_embedding"))
    folder = written(tmp_path / "export", model)
    assert set(load_file(folder / "model.safetensors")) == NAMES.keys()
    assert f"\n- {reason}\n" in (folder / "README.md").read_text()
    assert not (folder / paddlenlp.EXAMPLE).exists()
    change_json(folder / "config.json", architectures=["LlamaForCausalLM"])
    assert not paddlenlp.detect(folder)


def test_the_mask_of_the_example_is_the_bias_by_its_definition() -> None:
    table = np.random.default_rng(2).standard_normal((33, 3)).astype(np.float32)
    is_token = np.arange(110) < np.array([[110], [70]])
    mask = attention_mask(table, is_token)
    assert mask.shape == (2, 3, 110, 110)
    assert mask.dtype == np.float32
    for query in range(110):
        for key in range(110):
            expected = table[bucket(query, key)]
            assert np.array_equal(mask[0, :, query, key], expected)
            np.testing.assert_allclose(mask[1, :, query, key], expected - 1e4 * (key >= 70), rtol=1e-6)


def test_segments_of_an_export_that_were_trained_in_paddlenlp_are_read(tmp_path: Path) -> None:
    model = model_of(dataclasses.replace(PLAIN, use_sentence_embedding=False))
    folder = written(tmp_path / "export", model)
    arrays, card = load_file(folder / "model.safetensors"), (folder / "README.md").read_text()
    assert "\n- segments: PaddleNLP always adds" in card
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
    assert (folder / paddlenlp.EXAMPLE).is_file()
    assert "rel_pos_embedding" not in read.parameters
    assert any("left out rel_pos_embedding" in note for note in read.notes)
    change_json(folder / "config.json", use_relative_position=True)
    read = paddlenlp.read(folder)
    assert np.array_equal(read.parameters["rel_pos_embedding"], model.parameters["rel_pos_embedding"])


@pytest.mark.parametrize("family", ["bert", "ernie"])
def test_encoders_of_paddlenlps_bert_and_ernie_are_read(tmp_path: Path, family: str) -> None:
    model = model_of()
    folder = written(tmp_path / "export", model)
    renamed = {f"{family}.{name}": values for name, values in load_file(folder / "model.safetensors").items()}
    save_file(renamed | {"cls.predictions.layer_norm.bias": np.ones(16, np.float32)}, folder / "model.safetensors")
    change_json(folder / "config.json", architectures=[f"{family.title()}ForMaskedLM"], layer_norm_eps=1e-6)
    read = paddlenlp.read(folder)
    # PaddleNLP's Ernie ignores layer_norm_eps.
    assert read.config == dataclasses.replace(PLAIN, layer_norm_eps=1e-6 if family == "bert" else 1e-12)
    assert np.array_equal(read.parameters["pooled_fc.w_0"], model.parameters["pooled_fc.w_0"])
    assert any("cls.predictions.layer_norm.bias" in note for note in read.notes)
    content = json.loads((folder / "config.json").read_text())
    del content["paddlenlp_version"]
    (folder / "config.json").write_text(json.dumps(content))
    assert not paddlenlp.detect(folder)  # a folder of transformers


@pytest.mark.parametrize(
    ("change", "message"),
    [
        *(({"architectures": names}, "of ErnieGram, or") for names in (["GPTModel"], [])),
        ({"hidden_size": "wide"}, "hidden_size"),
        ({"num_hidden_layers": 2}, "missing"),
        ({"use_relative_position": True}, "rel_pos_embeddings"),
        ({"use_relative_position": 1}, "use_relative_position"),
        ({"pool_act": "relu", "architectures": ["BertModel"]}, "pool_act"),
        ({"use_task_id": True, "architectures": ["ErnieModel"]}, "use_task_id"),
    ],
    ids=str,
)
def test_a_folder_that_cannot_be_read_is_refused_in_one_line(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    folder = written(tmp_path / "export", model_of())
    change_json(folder / "config.json", **change)
    with pytest.raises(InputError, match=rf"^{folder}.*{message}.*$"):
        read_model(folder)
