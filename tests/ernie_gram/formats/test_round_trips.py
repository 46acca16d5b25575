"""Every pair of formats that can hold a model: parameters equal to the bit, outputs equal."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ernie_gram.formats.model import Format, ModelRecord, digest_of
from ernie_gram.formats.registry import WRITTEN, read_model, write_model
from ernie_gram.formats.untrusted.reading import read_arrays
from reader.errors import InputError
from reader.tokenization.sentencepiece import SentencePieceVocabulary
from reader.tokenization.wordpiece import WordPieceVocabulary
from tests.reader.tokenization.test_sentencepiece import OURS, trained
from tests.support.model_folders import VOCABULARY, encoder_output, random_model

PLAIN = {"use_relative_position": False}
BERT = {**PLAIN, "use_sentence_embedding": True}
MODELS = {
    "relative-pooler": {"use_pooler": True, "hidden_act": "relu"},
    "plain": {**PLAIN, "use_pooler": True, "vocabulary": WordPieceVocabulary(VOCABULARY.tokens, lowercase=False)},
    "bert-head": {**BERT, "with_head": True},
    "bert-epsilon-intermediate": {**BERT, "layer_norm_eps": 1e-12, "intermediate_size": 24},
    "everything": {"use_sentence_embedding": True, "use_pooler": True, "with_head": True},
    "embedding-size": {"emb_size": 12},
    "unused-rows": {**BERT, "vocab_size": len(VOCABULARY) + 3, "with_head": True},
}
# The formats that can hold each model; a format that holds fewer than it could would fail here.
ALL = {"ernie_gram", "bert", "paddlenlp"}
HELD_BY = {
    "relative-pooler": {"ernie_gram"},
    "plain": ALL,
    "bert-head": {"ernie_gram", "bert"},
    "bert-epsilon-intermediate": {"ernie_gram", "bert"},
    "everything": {"ernie_gram"},
    "embedding-size": {"ernie_gram"},
    "unused-rows": {"ernie_gram", "bert"},
}
# Settings that only training reads. BERT's config.json has no place for them.
TRAINING_SETTINGS = {"out_emb_size": 128, "max_ngram_tokens": 8, "relative_position_start": "normal"}


def assert_same_model(found: ModelRecord, model: ModelRecord) -> None:
    assert replace(found.config, **TRAINING_SETTINGS) == replace(model.config, **TRAINING_SETTINGS)
    assert found.parameters.keys() == model.parameters.keys()
    for name, values in model.parameters.items():
        assert found.parameters[name].dtype == np.float32
        assert np.array_equal(found.parameters[name], values), name
    assert found.vocabulary.fingerprint == model.vocabulary.fingerprint
    assert found.vocabulary.lowercase == model.vocabulary.lowercase
    assert (found.pretraining is None) == (model.pretraining is None)


def holds(each: Format, model: ModelRecord) -> bool:
    """Return whether a format holds all of a model."""
    try:
        return not each.losses(model)
    except InputError:
        return False


@pytest.mark.parametrize("name", MODELS)
def test_a_model_is_the_same_after_any_two_formats_that_can_hold_it(name: str, tmp_path: Path) -> None:
    model = random_model(**MODELS[name])
    able = [each for each in WRITTEN if holds(each, model)]
    assert {each.name for each in able} == HELD_BY[name]
    last = model
    for first in able:
        assert write_model(model, tmp_path / first.name, first.name) == []
        between = read_model(tmp_path / first.name)
        assert between.format == first.name
        for second in able:
            folder = tmp_path / f"{first.name}-{second.name}"
            write_model(between, folder, second.name)
            last = read_model(folder)
            assert last.format == second.name
            assert_same_model(last, model)
    for found, expected in zip(
        encoder_output(last.config, last.parameters), encoder_output(model.config, model.parameters), strict=True
    ):
        np.testing.assert_allclose(found, expected, atol=1e-6)


def test_what_cannot_be_held_is_refused_with_the_reason_and_losses_only_if_accepted(tmp_path: Path) -> None:
    for model, target, reason in (
        (random_model(), "bert", "relative position"),
        (random_model(layer_norm_eps=1e-12, use_relative_position=False), "paddlenlp", "layer_norm_eps 1e-12"),
        (random_model(), "paddlenlp", "relative position"),
    ):
        with pytest.raises(InputError, match=rf"{target} cannot hold {reason}.*--accept_loss"):
            write_model(model, tmp_path / "refused", target)
        assert list(tmp_path.glob("*refused*")) == []
        folder = tmp_path / f"accepted-{target}-{reason}"
        (lost,) = write_model(model, folder, target, accept_loss=True)
        assert reason in lost
        found = read_model(folder)
        assert found.config.layer_norm_eps == 1e-5
        kept = model.parameters.keys() - ({"rel_pos_embedding"} if reason == "relative position" else set())
        assert found.parameters.keys() == kept
    for changes, target in (
        ({"emb_size": 12, **PLAIN}, "bert"),
        ({"emb_size": 12, **PLAIN}, "paddlenlp"),
    ):
        with pytest.raises(InputError, match=next(iter(changes))):
            write_model(random_model(**changes), tmp_path / "never", target, accept_loss=True)
    assert not (tmp_path / "never").exists()


def test_the_transform_of_a_low_rank_head_stays_where_heads_for_fine_tuning_read_it(tmp_path: Path) -> None:
    model = random_model()
    random = np.random.default_rng(0)
    transform = {
        "mask_lm_trans_fc.w_0": random.standard_normal((16, 128)).astype(np.float32),
        "mask_lm_trans_fc.b_0": random.standard_normal(128).astype(np.float32),
    }
    model = replace(model, parameters=model.parameters | transform)
    assert write_model(model, tmp_path / "ours", "ernie_gram") == []
    assert_same_model(read_model(tmp_path / "ours"), model)
    with pytest.raises(InputError, match=r"mask_lm_trans_fc\.w_0"):
        write_model(model, tmp_path / "bert", "bert")


@pytest.mark.parametrize("target", sorted(ALL - {"ernie_gram"}))
def test_every_parameter_that_is_not_written_is_a_loss(target: str, tmp_path: Path) -> None:
    # A task with the transform of a head over tokens, as a fine-tuned BERT has it.
    head = random_model(with_head=True, **BERT)
    task = {"cls_out_w": np.ones((16, 2), np.float32), "cls_out_b": np.ones(2, np.float32)}
    kept = {name: values for name, values in head.parameters.items() if name != "mask_lm_out_fc.b_0"}
    model = replace(head, pretraining=None, parameters=kept | task)
    write_model(model, tmp_path / target, target, accept_loss=True)
    missing = model.parameters.keys() - read_model(tmp_path / target).parameters.keys()
    assert missing >= task.keys()
    assert len(missing - task.keys()) == 4  # of the transform
    # A table of pre-training beside a head that can be held.
    more = replace(head, parameters=head.parameters | {"query_embedding": np.ones((8, 16), np.float32)})
    with pytest.raises(InputError, match=r"query_embedding: the only head|and 1 more: the only head"):
        write_model(more, tmp_path / "more", target)


def test_a_vocabulary_of_another_kind_is_refused_by_other_software(tmp_path: Path) -> None:
    vocabulary = SentencePieceVocabulary(trained(**OURS))
    model = random_model(vocab_size=len(vocabulary), **BERT)
    model = replace(model, vocabulary=vocabulary)
    for target in sorted(ALL - {"ernie_gram"}):
        with pytest.raises(InputError, match="sentencepiece"):
            write_model(model, tmp_path / target, target, accept_loss=True)


def test_tables_that_a_model_does_not_read_are_written_as_zeros_where_the_other_software_always_reads_them(
    tmp_path: Path,
) -> None:
    """Rows beyond the vocabulary are never predicted there."""
    model = random_model(**MODELS["unused-rows"])
    write_model(model, tmp_path / "rows", "bert")
    bias = read_arrays(tmp_path / "rows" / "model.safetensors")["cls.predictions.bias"]
    assert np.array_equal(bias[:-3], model.parameters["mask_lm_out_fc.b_0"])
    assert not np.exp(bias[-3:].astype(np.float32)).any()
    model = random_model(use_relative_position=False)
    for target in ("bert", "paddlenlp"):
        write_model(model, tmp_path / target, target)
        table = read_arrays(tmp_path / target / "model.safetensors")["embeddings.token_type_embeddings.weight"]
        assert table.shape == (2, 16)
        assert not table.any()


def test_the_digest_covers_names_types_shapes_and_values_and_no_order() -> None:
    parameters = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.ones(4, np.float32)}
    digest = digest_of(parameters)
    assert digest_of(dict(reversed(parameters.items()))) == digest
    assert digest_of(parameters | {"a": np.asfortranarray(parameters["a"])}) == digest
    others = (
        {"a": parameters["a"], "c": parameters["b"]},
        parameters | {"a": parameters["a"].ravel()},
        parameters | {"a": parameters["a"].view(np.int32)},
        parameters | {"a": np.nextafter(parameters["a"], np.float32(9))},
    )
    assert len({digest, *map(digest_of, others)}) == 5
