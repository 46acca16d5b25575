"""Hugging Face's BERT, written here independently of our writer, against BERT in numpy."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from ernie_gram.formats.registry import read_model, write_model
from reader.errors import InputError
from tests.support import reference_bert as reference
from tests.support.model_folders import VOCABULARY, encoder_output, random_ids
from tests.support.static_programs import Arrays
from tests.support.torch_writer import tensor, write_archive

LAYERS, HEADS, HIDDEN, INNER, POSITIONS, TOKENS = 2, 4, 16, 40, 24, len(VOCABULARY)
CONFIG: dict[str, Any] = {
    "architectures": ["BertForPreTraining"],
    "model_type": "bert",
    "attention_probs_dropout_prob": 0.1,
    "gradient_checkpointing": False,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "hidden_size": HIDDEN,
    "initializer_range": 0.02,
    "intermediate_size": INNER,
    "layer_norm_eps": 1e-12,
    "max_position_embeddings": POSITIONS,
    "num_attention_heads": HEADS,
    "num_hidden_layers": LAYERS,
    "pad_token_id": 0,
    "position_embedding_type": "absolute",
    "type_vocab_size": 2,
    "vocab_size": TOKENS,
}
BERT = reference.random_bert(TOKENS, HIDDEN, LAYERS, INNER, POSITIONS)
TOKENIZER = {
    "normalizer": {"type": "BertNormalizer", "lowercase": True},
    "model": {"type": "WordPiece", "vocab": {token: i for i, token in enumerate(VOCABULARY.tokens)}},
}


def bert_folder(folder: Path, arrays: Arrays = BERT, vocabulary: bool = True, **changes: Any) -> Path:
    """Write a folder as transformers does; `changes` are keys of config.json."""
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(CONFIG | changes))
    save_file(arrays, folder / "model.safetensors", {"format": "pt"})
    if vocabulary:
        (folder / "vocab.txt").write_text("\n".join(VOCABULARY.tokens) + "\n")
        (folder / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": True}))
    return folder


def bare(arrays: Arrays) -> Arrays:
    """Return the parameters of a BertModel: no prefix, no head."""
    return {name.removeprefix("bert."): values for name, values in arrays.items() if name.startswith("bert.")}


def no_bias_but_the_copy(arrays: Arrays) -> Arrays:
    """Return parameters of which the decoder's bias was stored instead of the head's, which is the same."""
    return {name.replace("cls.predictions.bias", "cls.predictions.decoder.bias"): arrays[name] for name in arrays}


def old(arrays: Arrays) -> Arrays:
    """Return parameters with the spellings of LayerNorm's in old files."""
    endings = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
    renamed = {}
    for name, values in arrays.items():
        ending = next((each for each in endings if name.endswith(each)), "")
        renamed[name.removesuffix(ending) + endings.get(ending, "")] = values
    return renamed


@pytest.mark.parametrize("spelling", [dict, bare, old, no_bias_but_the_copy])
def test_the_encoder_and_the_pooler_equal_bert_with_padding_and_pairs(spelling: Any, tmp_path: Path) -> None:
    model = read_model(bert_folder(tmp_path / "bert", spelling(BERT)))
    assert (model.format, model.config.layer_norm_eps, model.config.feed_forward_size) == ("bert", 1e-12, INNER)
    assert (model.pretraining is None) == (spelling is bare)
    found = encoder_output(model.config, model.parameters)
    ids, lengths, segments = random_ids()
    for b, length in enumerate(lengths):
        mask = (np.arange(ids.shape[1]) < length).astype(int)
        expected = reference.encode(BERT, LAYERS, HEADS, ids[b], segments[b], mask)
        np.testing.assert_allclose(found[b], expected[:length], atol=1e-5)
        np.testing.assert_allclose(found[-1][b], reference.pooled(BERT, expected), atol=1e-5)


@pytest.mark.parametrize(("prefix", "arrays"), [("module.", bare(BERT)), ("net.encoder.", BERT)])
def test_what_a_wrapper_puts_before_all_names_is_left_out(prefix: str, arrays: Arrays, tmp_path: Path) -> None:
    expected = read_model(bert_folder(tmp_path / "bert", arrays)).parameters
    wrapped = {f"{prefix}{name}": values for name, values in arrays.items()}
    model = read_model(bert_folder(tmp_path / "wrapped", wrapped))
    np.testing.assert_equal(model.parameters, expected)
    with pytest.raises(InputError, match="embeddings"):
        read_model(bert_folder(tmp_path / "other", {**wrapped, "other.weight": np.zeros(2, np.float32)}))


def test_a_folder_in_googles_form_is_refused_with_the_file_and_the_cure(tmp_path: Path) -> None:
    folder = bert_folder(tmp_path / "bert")
    (folder / "config.json").rename(folder / "bert_config.json")
    with pytest.raises(
        InputError, match=r'bert_config\.json: a BERT of Google\'s form; copy it to config\.json, and add "mo'
    ):
        read_model(folder)


def test_tables_of_tasks_are_left_out_unless_the_model_reads_them(tmp_path: Path) -> None:
    table = {"bert.embeddings.task_type_embeddings.weight": np.ones((3, HIDDEN), np.float32)}
    model = read_model(bert_folder(tmp_path / "ernie", BERT | table, model_type="ernie"))
    np.testing.assert_equal(model.parameters, read_model(bert_folder(tmp_path / "bert")).parameters)
    with pytest.raises(InputError, match=r"config\.json: use_task_id True: .*ERNIE 3\.0"):
        read_model(bert_folder(tmp_path / "tasks", BERT | table, model_type="ernie", use_task_id=True))


@pytest.mark.parametrize("rows", [TOKENS, TOKENS + 4])
def test_the_head_fills_masks_with_berts_probabilities(rows: int, tmp_path: Path) -> None:
    from ernie_gram.api import Model

    arrays = BERT if rows == TOKENS else reference.random_bert(rows, HIDDEN, LAYERS, INNER, POSITIONS)
    model = read_model(bert_folder(tmp_path / "bert", arrays, vocab_size=rows))
    filler = Model(model)
    texts = [filler.texts.encode_masked("the [MASK] sat on a [MASK] ."), filler.texts.encode_masked("a dog [MASK]")]
    found = filler.probabilities(filler.texts.masked_batch(texts))
    expected = []
    for ids in texts:
        hidden = reference.encode(arrays, LAYERS, HEADS, ids, np.zeros_like(ids), np.ones_like(ids))
        probabilities = reference.token_probabilities(arrays, hidden[ids == VOCABULARY.mask])[:, :TOKENS]
        expected += list(probabilities / probabilities.sum(-1, keepdims=True))
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_files_of_pytorch_give_the_same_model(tmp_path: Path) -> None:
    expected = read_model(bert_folder(tmp_path / "bert")).parameters
    folder = bert_folder(tmp_path / "torch")
    (folder / "model.safetensors").unlink()
    write_archive(folder / "pytorch_model.bin", {name: tensor(values) for name, values in BERT.items()})
    np.testing.assert_equal(read_model(folder).parameters, expected)


def test_a_written_bert_has_the_names_and_the_orientation_of_berts_files(tmp_path: Path) -> None:
    model = read_model(bert_folder(tmp_path / "bert"))
    write_model(model, tmp_path / "again", "bert")
    written = load_file(tmp_path / "again" / "model.safetensors")
    with safe_open(tmp_path / "again" / "model.safetensors", "np") as file:
        assert file.metadata() == {"format": "pt"}, "transformers refuses others"
    ignored = ("cls.seq_relationship", "bert.embeddings.position_ids")
    np.testing.assert_equal(written, {name: BERT[name] for name in BERT if not name.startswith(ignored)})
    settings = json.loads((tmp_path / "again" / "config.json").read_text())
    assert settings["architectures"] == ["BertForMaskedLM"]
    changed = {key for key in settings if settings[key] != CONFIG.get(key)}
    assert changed == {"architectures"}
    assert read_model(tmp_path / "again").vocabulary.tokens == VOCABULARY.tokens


def test_folders_of_sentence_transformers_and_tokenizer_json_are_read(tmp_path: Path) -> None:
    folder = bert_folder(tmp_path / "sentences", bare(BERT), vocabulary=False)
    (folder / "modules.json").write_text("[]")
    (folder / "tokenizer.json").write_text(json.dumps(TOKENIZER))
    model = read_model(folder)
    whole = read_model(bert_folder(tmp_path / "whole", bare(BERT)))
    assert all(np.array_equal(model.parameters[name], values) for name, values in whole.parameters.items())
    assert model.vocabulary.fingerprint == VOCABULARY.fingerprint


def test_keys_that_config_json_lacks_have_the_defaults_of_transformers(tmp_path: Path) -> None:
    arrays = reference.random_bert(TOKENS, 24, 1, 3072, 512)
    folder = bert_folder(tmp_path / "bert", arrays)
    settings = {"model_type": "bert", "vocab_size": TOKENS, "hidden_size": 24, "num_hidden_layers": 1}
    (folder / "config.json").write_text(json.dumps(settings))
    config = read_model(folder).config
    assert (config.layer_norm_eps, config.intermediate_size, config.num_attention_heads) == (1e-12, 3072, 12)
    assert (config.max_position_embeddings, config.sent_type_vocab_size, config.hidden_act) == (512, 2, "gelu")
    assert (config.hidden_dropout_prob, config.attention_probs_dropout_prob) == (0.1, 0.1)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("hidden_act", "gelu_new"), ("hidden_act", ["gelu"]), ("position_embedding_type", "relative_key")),
        *(("is_decoder", True), ("add_cross_attention", True), ("hidden_size", "wide"), ("num_hidden_layers", 10**9)),
        *(("num_hidden_layers", -1), ("num_attention_heads", 5), ("layer_norm_eps", 1.0)),
    ],
)
def test_settings_that_our_encoder_does_not_have_are_refused(key: str, value: Any, tmp_path: Path) -> None:
    folder = bert_folder(tmp_path / "bert", **{key: value})
    with pytest.raises(InputError, match=rf"^{folder / 'config.json'}: .*{key.removeprefix('num_attention_')}"):
        read_model(folder)


def test_vocabularies_and_weights_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    folder = bert_folder(tmp_path / "bert")
    (folder / "vocab.txt").write_text("\n".join([*VOCABULARY.tokens, "more"]))
    with pytest.raises(InputError, match=r"vocab\.txt: 21 tokens"):
        read_model(folder)
    (folder / "vocab.txt").unlink()
    for vocabulary in ({"type": "BPE", "vocab": {}}, {"type": "WordPiece", "vocab": {"a": 5}}):
        (folder / "tokenizer.json").write_text(json.dumps({"model": vocabulary}))
        with pytest.raises(InputError, match=r"tokenizer\.json: "):
            read_model(folder)
    (folder / "tokenizer.json").unlink()
    with pytest.raises(InputError, match="has no vocabulary"):
        read_model(folder)
    (folder / "vocab.txt").write_text("\n".join(VOCABULARY.tokens))
    (folder / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": False}))
    assert not read_model(folder).vocabulary.lowercase
    (folder / "model.safetensors").rename(folder / "model-00001-of-00002.safetensors")
    with pytest.raises(InputError, match=f"^{folder}: "):
        read_model(folder)


def test_an_output_table_that_is_not_the_embedding_is_refused(tmp_path: Path) -> None:
    table = BERT["bert.embeddings.word_embeddings.weight"]
    tied = BERT | {
        "cls.predictions.decoder.weight": table,
        "cls.predictions.decoder.bias": BERT["cls.predictions.bias"],
    }
    assert read_model(bert_folder(tmp_path / "tied", tied)).pretraining is not None
    with pytest.raises(InputError, match=r"cls\.predictions\.decoder\.weight"):
        read_model(bert_folder(tmp_path / "untied", tied | {"cls.predictions.decoder.weight": table + 1}))


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
        ({"bert.embeddings.token_type_embeddings.weight": None}, "token_type_embeddings.weight missing"),
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


def test_parameters_that_are_left_out_are_said(tmp_path: Path) -> None:
    encoder = {name: values for name, values in BERT.items() if name.startswith("bert.")}
    ignored = {"cls.seq_relationship.bias": NAN[:2], "classifier.bias": NAN[:2]}
    model = read_model(bert_folder(tmp_path / "bert", encoder | ignored))
    (note,) = model.notes
    assert all(name in note for name in ("bert.embeddings.position_ids", *ignored))
    assert "mask_lm_out_fc.b_0" not in model.parameters
