"""A warm start: settings, refused models, start values rule by rule, and what the network computes with them."""

from __future__ import annotations

import dataclasses
import itertools
import re
from typing import Any

import numpy as np
import pytest

from ernie_gram.formats.model import ModelRecord
from ernie_gram.model.config import ModelConfig
from ernie_gram.pretraining import warm_start
from ernie_gram.pretraining.config import DataConfig, GeneratorConfig, PathsConfig, PretrainConfig
from ernie_gram.pretraining.network import build_prediction, parameter_shapes
from ernie_gram.pretraining.sizes import CorpusSizes
from ernie_gram.pretraining.warm_start import check_vocabulary, fit_to_start, ngram_means, warm_start_values
from reader.corpus.memmap import Corpus
from reader.errors import InputError
from tests.support import reference_model as reference
from tests.support.exported_models import run_with_executor
from tests.support.model_folders import BERT, POSITIONS, H, encoder_output_for, given_bert
from tests.support.objectives import OBJECTIVES
from tests.support.static_programs import Arrays, fresh_scope

F, N = 1000, 598  # those of the fixture `corpus`
SIZES = CorpusSizes(F, N)


def fit(corpus: Corpus, max_seq_len: int = 32, **model: Any) -> PretrainConfig:
    """Fit a config that gives the settings `model` to a BERT."""
    config = PretrainConfig(
        model=ModelConfig(**model), data=DataConfig(max_seq_len=max_seq_len), paths=PathsConfig(start="given")
    )
    return fit_to_start(config, {f"model.{key}" for key in model}, given_bert(corpus.vocabulary))


def test_settings_are_those_of_the_model_and_given_ones_that_do_not_change_it(corpus: Corpus) -> None:
    config = fit(corpus)
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
    config = fit(corpus, **given)
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
    settings = fit_to_start(config, (), model).model
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
    assert fit_to_start(config, (), model).model.out_emb_size == 0
    del model.parameters["mask_lm_trans_layer_norm_scale"]
    model.parameters["mask_lm_trans_fc.w_0"] = np.zeros((16, 12), np.float32)
    assert fit_to_start(config, (), model).model.out_emb_size == 12


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


def config_of(model: ModelRecord, rung: str, share: bool = True, **settings: Any) -> PretrainConfig:
    """Return the config of a run that starts from a model; `settings` are those of `model` that are given."""
    config = PretrainConfig(
        model=dataclasses.replace(PretrainConfig().model, **settings),
        data=DataConfig(max_seq_len=32),
        objective=OBJECTIVES[rung],
        generator=GeneratorConfig(share_embeddings=share),
        paths=PathsConfig(start="given"),
    )
    return fit_to_start(config, {f"model.{key}" for key in settings}, model)


def values_of(model: ModelRecord, config: PretrainConfig, corpus: Corpus, biases: Arrays | None = None) -> Arrays:
    """Return the start values."""
    return warm_start_values(model, config, corpus, biases or {})


def slow_means(rows: np.ndarray, corpus: Corpus) -> np.ndarray:
    """Return the mean of the rows of each n-gram's tokens, one n-gram at a time, in float64."""
    return np.array(
        [
            np.mean([rows[token] for token in corpus.ngram_tokens[first:last]], axis=0, dtype=np.float64)
            for first, last in zip(corpus.ngram_offsets, corpus.ngram_offsets[1:], strict=False)
        ]
    )


@pytest.mark.parametrize("block", [1, 7])
def test_the_row_of_an_ngram_is_the_mean_of_the_rows_of_its_tokens(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    monkeypatch.setattr(warm_start, "NGRAMS_PER_BLOCK", block)
    rows = np.random.default_rng(1).standard_normal((F, 5)).astype(np.float32)
    means = ngram_means(rows, corpus)
    assert means.dtype == np.float32
    np.testing.assert_allclose(means, slow_means(rows, corpus), atol=1e-6)


def test_a_model_without_heads_gives_the_encoder_and_the_rest_is_computed(corpus: Corpus) -> None:
    model = given_bert(corpus.vocabulary)
    given = model.parameters
    config = config_of(model, "cnp", use_relative_position=True, max_position_embeddings=36)
    arrays = values_of(model, config, corpus)
    shapes = parameter_shapes(config, SIZES)
    assert set(shapes) - set(arrays) == {"mask_lm_out_fc.b_0", "fine_lm_out_fc.b_0"}
    assert set(arrays) - set(shapes) == {"pooled_fc.w_0", "pooled_fc.b_0"}
    assert {name: arrays[name].shape for name in shapes.keys() & arrays} == {
        name: shapes[name] for name in shapes.keys() & arrays
    }
    assert all(array.dtype == np.float32 for array in arrays.values())
    for name, array in given.items():
        assert np.array_equal(arrays[name], array[:36] if name == "pos_embedding" else array), name
    np.testing.assert_allclose(arrays["ngram_embedding"], slow_means(given["word_embedding"], corpus), atol=1e-6)
    assert not arrays["rel_pos_embedding"].any()
    mask = corpus.vocabulary.mask
    assert np.array_equal(arrays["query_embedding"], given["word_embedding"][[mask] * 8])
    for head in ("mask_lm", "fine_lm"):
        assert np.array_equal(arrays[f"{head}_trans_fc.w_0"], np.eye(H))
        assert (arrays[f"{head}_trans_layer_norm_scale"] == 1).all()
        assert not arrays[f"{head}_trans_fc.b_0"].any()
        assert not arrays[f"{head}_trans_layer_norm_bias"].any()


def test_a_given_head_is_taken_for_the_tokens_and_for_query_rows(corpus: Corpus) -> None:
    model = given_bert(corpus.vocabulary, with_head=True)
    given = model.parameters
    biases = {
        "mask_lm_out_fc.b_0": np.arange(F + N, dtype=np.float32),
        "fine_lm_out_fc.b_0": np.arange(F, dtype=np.float32),
    }
    arrays = values_of(model, config_of(model, "cnp"), corpus, biases)
    for part in ("trans_fc.w_0", "trans_fc.b_0", "trans_layer_norm_scale", "trans_layer_norm_bias"):
        for head in ("mask_lm", "fine_lm"):
            assert np.array_equal(arrays[f"{head}_{part}"], given[f"mask_lm_{part}"])
    assert np.array_equal(arrays["fine_lm_out_fc.b_0"], given["mask_lm_out_fc.b_0"])
    given_biases, counts = given["mask_lm_out_fc.b_0"], corpus.token_counts
    assert np.array_equal(arrays["mask_lm_out_fc.b_0"][:F], given_biases)
    shifts = [bias - np.log((count + 1) / (counts.sum() + F)) for bias, count in zip(given_biases, counts, strict=True)]
    tokens = [corpus.ngram_tokens[first:last] for first, last in itertools.pairwise(corpus.ngram_offsets)]
    expected = [F + i + np.mean([shifts[token] for token in ids]) for i, ids in enumerate(tokens)]
    np.testing.assert_allclose(arrays["mask_lm_out_fc.b_0"][F:], expected, rtol=1e-5)
    # A model that predicts n-grams has counted the tokens outside of n-grams only.
    logs = np.log((corpus.unit_counts + 1) / (corpus.unit_counts.sum() + F + N)).astype(np.float32)
    explicit = dataclasses.replace(model, pretraining={"objective": {"masking": "explicit"}})
    explicit.parameters["mask_lm_out_fc.b_0"] = logs[:F]
    by_units = values_of(explicit, config_of(model, "cnp"), corpus, {"mask_lm_out_fc.b_0": logs})
    np.testing.assert_allclose(by_units["mask_lm_out_fc.b_0"], logs, atol=1e-5)
    given["mask_lm_out_fc.b_0"] = given_biases
    without = values_of(model, config_of(model, "cnp"), corpus)
    means = [np.mean(given_biases[ids]) for ids in tokens]
    np.testing.assert_allclose(without["mask_lm_out_fc.b_0"][F:], means, rtol=1e-4, atol=1e-6)


def test_a_low_rank_head_is_drawn_unless_the_model_has_one_of_its_size(corpus: Corpus) -> None:
    model = given_bert(corpus.vocabulary, with_head=True)
    arrays = values_of(model, config_of(model, "cnp", out_emb_size=12), corpus)
    assert not [name for name in arrays if name.startswith(("mask_lm", "fine_lm", "ngram_embedding"))]
    given = model.parameters
    for part in ("scale", "bias"):
        del given[f"mask_lm_trans_layer_norm_{part}"]
    random = np.random.default_rng(4)
    given["mask_lm_trans_fc.w_0"] = random.standard_normal((H, 12)).astype(np.float32)
    given["mask_lm_trans_fc.b_0"] = random.standard_normal(12).astype(np.float32)
    table = given["mask_lm_out_embedding"] = random.standard_normal((F, 12)).astype(np.float32)
    config = config_of(model, "cnp")
    arrays = values_of(model, config, corpus)
    assert parameter_shapes(config, SIZES).keys() <= arrays.keys()
    assert np.array_equal(arrays["mask_lm_trans_fc.w_0"], given["mask_lm_trans_fc.w_0"])
    assert np.array_equal(arrays["mask_lm_out_embedding"][:F], table)
    np.testing.assert_allclose(arrays["mask_lm_out_embedding"][F:], slow_means(table, corpus), atol=1e-6)
    assert np.array_equal(arrays["fine_lm_out_embedding"], table)
    # Upstream's released weights have the transform only.
    alone = dataclasses.replace(model, parameters={n: a for n, a in given.items() if not n.startswith("mask_lm_out")})
    arrays = values_of(alone, config, corpus)
    heads = {name for name in arrays if name.startswith(("mask_lm", "fine_lm"))}
    assert heads == {f"{head}_trans_fc.{part}" for head in ("mask_lm", "fine_lm") for part in ("w_0", "b_0")}
    # A head of another kind is replaced by the identity.
    arrays = values_of(model, config_of(model, "explicit", out_emb_size=0), corpus)
    assert np.array_equal(arrays["mask_lm_trans_fc.w_0"], np.eye(H))


@pytest.mark.parametrize(("share", "size"), [(True, 0), (False, 0), (False, 12)])
def test_a_model_of_the_same_run_and_lexicon_gives_every_parameter(corpus: Corpus, share: bool, size: int) -> None:
    config = config_of(given_bert(corpus.vocabulary), "both", share=share, out_emb_size=size)
    random = np.random.default_rng(1)
    shapes = parameter_shapes(config, SIZES)
    given = {name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    model = given_bert(corpus.vocabulary, parameters=given, lexicon=corpus.lexicon)
    arrays = values_of(model, config, corpus)
    np.testing.assert_equal(arrays, given)
    # With another lexicon, the rows of tokens are the same, those of n-grams are not.
    arrays = values_of(dataclasses.replace(model, lexicon=None), config, corpus)
    assert arrays.keys() == given.keys()
    table = "ngram_embedding"
    np.testing.assert_allclose(arrays[table], slow_means(given["word_embedding"], corpus), atol=1e-5)
    for name in set(given) - {table, f"generator_{table}"}:
        assert np.array_equal(arrays[name][:F], given[name][:F]), name
        assert len(given[name]) != F + N or not np.array_equal(arrays[name][F:], given[name][F:]), name
    # A generator that was trained without relative positions keeps its function.
    assert "generator_rel_pos_embedding" not in given
    with_bias = dataclasses.replace(config.model, use_relative_position=True, relative_position_start="zero")
    arrays = values_of(model, dataclasses.replace(config, model=with_bias), corpus)
    assert not arrays["generator_rel_pos_embedding"].any()
    # A run with fewer positions takes the first ones, in the model and in the generator.
    shorter = dataclasses.replace(config, model=dataclasses.replace(config.model, max_position_embeddings=36))
    arrays = values_of(model, shorter, corpus)
    for name in ("pos_embedding", "generator_pos_embedding"):
        assert np.array_equal(arrays[name], given[name][:36]), name
    # A generator of another size is drawn, and one that was trained with other embeddings.
    for change in ({"num_attention_heads": 2}, {"share_embeddings": not share}):
        other = dataclasses.replace(config, generator=dataclasses.replace(config.generator, **change))
        assert not [name for name in values_of(model, other, corpus) if name.startswith("generator_")]


@pytest.mark.parametrize("relative", [True, False])
def test_the_first_outputs_of_the_encoder_equal_those_of_the_given_model(corpus: Corpus, relative: bool) -> None:
    model = given_bert(corpus.vocabulary)
    config = config_of(model, "explicit", use_relative_position=relative)
    ids = np.random.default_rng(2).integers(5, F, (2, POSITIONS - 9))
    lengths, arrays = np.full(2, POSITIONS - 9), values_of(model, config, corpus)
    (context,) = encoder_output_for(config.model, arrays, ids, lengths, np.zeros_like(ids))
    p = {name: value.astype(np.float64) for name, value in model.parameters.items()}
    for found, row in zip(context, ids, strict=True):
        expected, _ = reference.encode(BERT, p, p["word_embedding"][row], np.zeros(len(row), int), [])
        np.testing.assert_allclose(found, expected, atol=1e-6)


def test_the_first_predictions_of_tokens_equal_those_of_the_given_head(corpus: Corpus) -> None:
    model = given_bert(corpus.vocabulary, with_head=True)
    config = config_of(model, "contiguous")
    ids = np.random.default_rng(2).integers(5, F, (1, 20))
    slots, biases = np.array([4, 11]), {"mask_lm_out_fc.b_0": np.zeros(F, np.float32)}
    started = dataclasses.replace(model, parameters=values_of(model, config, corpus, biases))
    with fresh_scope():
        batch = {"input_ids": ids, "lengths": np.array([20]), "slots": slots}
        found = run_with_executor(build_prediction(config, SIZES), started, batch)["probabilities"]
    p = {name: value.astype(np.float64) for name, value in model.parameters.items()}
    x, _ = reference.encode(BERT, p, p["word_embedding"][ids[0]], np.zeros(20, int), [])
    scores = reference.scores(p, x[slots], "mask_lm", p["word_embedding"], BERT.layer_norm_eps)
    expected = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-9)
