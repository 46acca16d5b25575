"""The given model of a warm start: the settings that it decides, and the models that are refused."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import numpy as np
import pytest

from ernie_gram.model.config import ModelConfig
from ernie_gram.pretraining.config import DataConfig, PathsConfig, PretrainConfig
from ernie_gram.pretraining.start_model import Start, check_vocabulary, fit_to_start
from reader.corpus.memmap import Corpus
from reader.errors import InputError
from tests.support.model_folders import BERT, given_bert


def fit(corpus: Corpus, max_seq_len: int = 32, **model: Any) -> tuple[PretrainConfig, Start]:
    """Fit a config that gives the settings `model` to a BERT."""
    config = PretrainConfig(
        model=ModelConfig(**model), data=DataConfig(max_seq_len=max_seq_len), paths=PathsConfig(start="given")
    )
    return fit_to_start(config, {f"model.{key}" for key in model}, given_bert(corpus.vocabulary))


def test_settings_are_those_of_the_model_and_given_ones_that_do_not_change_it(corpus: Corpus) -> None:
    config, _ = fit(corpus)
    expected = dataclasses.replace(BERT, vocab_size=1000, use_pooler=False, relative_position_start="zero")
    assert config.model == expected
    given = {
        "hidden_size": 16,
        "num_attention_heads": 4,
        "emb_size": None,
        "vocab_size": None,
        "hidden_dropout_prob": 0.0,
        "out_emb_size": 24,
        "use_relative_position": True,
        "max_ngram_tokens": 5,
        "max_position_embeddings": 33,
    }
    config, _ = fit(corpus, **given)
    for key, value in given.items():
        if key not in ("emb_size", "vocab_size"):
            assert getattr(config.model, key) == value, key
    assert (config.model.embedding_size, config.model.vocab_size) == (16, 1000)  # null is as in the given model
    assert config.model.relative_position_start == "zero"


@pytest.mark.parametrize(
    ("key", "value", "known"),
    [
        *(("hidden_size", 24, 16), ("emb_size", 8, None), ("intermediate_size", 64, 40), ("num_hidden_layers", 3, 2)),
        *(("num_attention_heads", 2, 4), ("vocab_size", 900, 1000), ("hidden_act", "relu", "gelu")),
        *(("use_sentence_embedding", False, True), ("sent_type_vocab_size", 4, 2), ("max_position_embeddings", 41, 40)),
        *(("max_position_embeddings", 31, 32), ("max_seq_len", 41, 40)),
    ],
)
def test_given_settings_that_differ_from_the_model_are_refused_with_both_values(
    corpus: Corpus, key: str, value: Any, known: Any
) -> None:
    with pytest.raises(InputError, match=rf"(model|data)\.{key}\b.*\b{value}\b") as error:
        fit(corpus, **{key: value})
    assert re.search(rf"\b{known}\b", str(error.value))


def test_a_model_with_relative_positions_or_query_rows_keeps_them(corpus: Corpus) -> None:
    model = given_bert(corpus.vocabulary, config=dataclasses.replace(BERT, use_relative_position=True))
    model.parameters["rel_pos_embedding"] = np.zeros((33, 4), np.float32)
    model.parameters["query_embedding"] = np.zeros((6, 16), np.float32)
    config = PretrainConfig(data=DataConfig(max_seq_len=32), paths=PathsConfig(start="given"))
    settings = fit_to_start(config, (), model)[0].model
    assert (settings.use_relative_position, settings.relative_position_start, settings.max_ngram_tokens) == (
        *(True, "distance"),
        6,
    )
    for key, value in (("use_relative_position", False), ("max_ngram_tokens", 8)):
        changed = dataclasses.replace(config, model=dataclasses.replace(config.model, **{key: value}))
        with pytest.raises(InputError, match=rf"model\.{key}"):
            fit_to_start(changed, {f"model.{key}"}, model)


def test_the_kind_of_the_output_is_that_of_the_given_head(corpus: Corpus) -> None:
    model = given_bert(corpus.vocabulary, with_head=True, config=dataclasses.replace(BERT, out_emb_size=128))
    config = PretrainConfig(data=DataConfig(max_seq_len=32), paths=PathsConfig(start="given"))
    assert fit_to_start(config, (), model)[0].model.out_emb_size == 0
    del model.parameters["mask_lm_trans_layer_norm_scale"]
    model.parameters["mask_lm_trans_fc.w_0"] = np.zeros((16, 12), np.float32)
    assert fit_to_start(config, (), model)[0].model.out_emb_size == 12


def test_a_model_of_another_vocabulary_is_refused(corpus: Corpus) -> None:
    vocabulary = corpus.vocabulary
    check_vocabulary(given_bert(vocabulary), corpus)
    tokens = [*vocabulary.tokens[:-2], *vocabulary.tokens[:-3:-1]]
    kind = type(vocabulary)
    text = "".join(f"{token}\n" for token in tokens).encode()
    for other in (
        kind.parse(text, True, "other"),
        kind.parse(vocabulary.content.rsplit(b"\n", 2)[0] + b"\n", True, "other"),
        kind.parse(vocabulary.content, False, "other"),
    ):
        with pytest.raises(InputError, match=rf"^paths\.start: .*{corpus.path}"):
            check_vocabulary(given_bert(other), corpus)
