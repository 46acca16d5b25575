"""The declared parameters are those of the programs.

Their names are those that the reference model reads, and those of an encoder are in formats/test_upstream.py.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ernie_gram.pretraining.network import build_evaluation, parameter_shapes
from ernie_gram.pretraining.sizes import CorpusSizes
from tests.support.small_model import MODEL, NGRAMS, TOKENS, config_of
from tests.support.static_programs import fresh_scope, training_program

MAPPED = {"emb_size": 6, "vocab_size": TOKENS + 2, "use_sentence_embedding": True, "use_relative_position": False}
# Test ID: rung, changes to the model, changes to the generator.
CASES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "default": ("explicit", {}, {}),
    "tied": ("explicit", {"out_emb_size": 0}, {}),
    "mapped": ("explicit", MAPPED, {}),
    "contiguous": ("contiguous", {}, {}),
    "full": ("full", {}, {}),
    "unshared": ("full", {}, {"share_embeddings": False}),
}


@pytest.mark.parametrize(("rung", "model", "generator"), CASES.values(), ids=CASES)
def test_parameters_have_the_expected_names_and_shapes(
    rung: str, model: dict[str, Any], generator: dict[str, Any]
) -> None:
    config, sizes = config_of(rung, replace(MODEL, **model), **generator), CorpusSizes(TOKENS, NGRAMS)
    expected = parameter_shapes(config, sizes)
    with fresh_scope():
        for program in (training_program(config, sizes), build_evaluation(config, sizes, 1)):
            found = {p.name: tuple(p.shape) for p in program.main.global_block().all_parameters() if p.name in expected}
            assert found == expected
            assert program.parameters == sorted(expected)
    # The narrow encoder of a generator has as many positions.
    assert rung != "full" or expected["generator_pos_embedding"] == (64, 8)
