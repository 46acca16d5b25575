"""The pre-training config: published settings, the identity of a run, and refused combinations."""

from __future__ import annotations

import dataclasses

import pytest

from ernie_gram.api import Model
from ernie_gram.formats.heads import is_explicit
from ernie_gram.inference.description import PROBABILITIES
from ernie_gram.inference.forward import build_outputs
from ernie_gram.pretraining.config import PretrainConfig, max_tokens, prediction_config
from reader.corpus.memmap import Corpus
from reader.errors import InputError
from tests.support.exported_models import random_model
from tests.support.small_model import TOKENS
from tests.support.static_programs import fresh_scope


def test_the_identity_holds_all_settings_that_can_change_a_result(corpus: Corpus) -> None:
    base = PretrainConfig()
    identity = base.identity(corpus.info)
    for section in ("model", "data", "objective", "optimizer"):
        for field in dataclasses.fields(getattr(base, section)):
            assert f"{section}.{field.name}" in identity
    other = dataclasses.replace(base, trainer=dataclasses.replace(base.trainer, workers=5, log_every=3))
    assert other.identity(corpus.info) == identity
    assert base.identity(dataclasses.replace(corpus.info, text="another")) != identity
    assert identity["data.cut"]  # the version of the sequences
    # Of a model folder that leaves out the default.
    assert is_explicit({}) == is_explicit({"objective": {}}) == base.objective.is_explicit


@pytest.mark.parametrize(("rung", "tokens"), [("explicit", 32), (None, 100)])
def test_a_text_has_as_many_tokens_as_a_sequence_of_pre_training_or_else_positions(
    rung: str | None, tokens: int
) -> None:
    model = random_model(rung, max_position_embeddings=100)
    assert max_tokens(model) == tokens
    with pytest.raises(InputError, match=f"{tokens + 1} tokens, but"):
        Model(model).texts.encode(("ba " * (tokens - 1),))


@pytest.mark.parametrize("rung", ["contiguous", "explicit", "both"])
def test_heads_kept_with_the_weights_of_earlier_versions_are_read(rung: str) -> None:
    model = random_model(rung, vocab_size=TOKENS)
    weights = dict(model.pretraining["objective"])
    fine = weights.pop("contiguous_weight") + weights.pop("comprehensive_weight")
    weights |= {"coarse_weight": weights.pop("explicit_weight"), "fine_weight": fine, "ngram_start": "mean"}
    removed = {"trainer": {"visualdl": True, "resume": "auto"}}  # in checkpoints
    old = dataclasses.replace(model, pretraining=model.pretraining | {"objective": weights} | removed)
    assert prediction_config(old) == prediction_config(model)
    if rung == "contiguous":
        with fresh_scope():
            build_outputs(old, [PROBABILITIES])
