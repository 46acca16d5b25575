"""The declared parameters are those of the network, with the same names and shapes."""

from __future__ import annotations

import dataclasses

import pytest

from ernie_gram.model.parameters import count
from ernie_gram.pretraining.config import GeneratorConfig
from ernie_gram.pretraining.network import parameter_shapes
from ernie_gram.pretraining.sizes import CorpusSizes
from tests.support.small_model import MODEL as SMALL
from tests.support.small_model import RUNGS, config_of

TIED = dataclasses.replace(SMALL, out_emb_size=0)
BUILT = {
    **{rung: config_of(rung) for rung in RUNGS},
    "tied": config_of("both", TIED),
    "tied, mapped": config_of("both", dataclasses.replace(TIED, emb_size=14)),
    "tied, unshared": config_of("both", TIED, share_embeddings=False),
    "tied, contiguous": config_of("contiguous", TIED),
    "shallow generator": dataclasses.replace(
        config_of("both"), generator=GeneratorConfig(num_hidden_layers=1, num_attention_heads=3)
    ),
}


@pytest.mark.parametrize(("case", "ngrams"), [*((case, 12) for case in BUILT), ("enrm", 0), ("tied", 0)])
def test_parameters_are_those_of_the_built_network(case: str, ngrams: int) -> None:
    from ernie_gram.pretraining.network import PretrainModel
    from ernie_gram.training.program import open_program
    from tests.support.static_programs import fresh_scope

    with fresh_scope(), open_program([]) as opened:
        PretrainModel(BUILT[case], CorpusSizes(40, ngrams))
        built = {p.name: tuple(p.shape) for p in opened.main.global_block().all_parameters()}
    found = parameter_shapes(BUILT[case], CorpusSizes(40, ngrams))
    assert found == built
    assert count(found) > 40 * 24
