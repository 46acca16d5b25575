"""The names and shapes of all parameters."""

from __future__ import annotations

import dataclasses

import pytest

from ernie_gram.pretraining.config import PretrainConfig
from ernie_gram.training.config import TrainerConfig
from tests.support.expected_parameters import CASES, LENGTH, MODEL, NGRAMS, TOKENS


@pytest.mark.parametrize("case", CASES)
def test_parameters_have_the_expected_names_and_shapes(case: str) -> None:
    from ernie_gram.pretraining.network import build_evaluation, parameter_shapes
    from ernie_gram.pretraining.sizes import CorpusSizes
    from tests.support.static_programs import fresh_scope, training_program

    change, objective, generator, expected = CASES[case]
    config = PretrainConfig(
        model=dataclasses.replace(MODEL, **change),  # type: ignore[arg-type]
        data=dataclasses.replace(PretrainConfig().data, max_seq_len=LENGTH),
        objective=objective,
        generator=generator,
        trainer=TrainerConfig(),
    )
    sizes = CorpusSizes(TOKENS, NGRAMS)
    assert {name: list(shape) for name, shape in parameter_shapes(config, sizes).items()} == expected
    with fresh_scope():
        for program in (training_program(config, sizes), build_evaluation(config, sizes, 1)):
            found = {p.name: list(p.shape) for p in program.main.global_block().all_parameters() if p.name in expected}
            assert found == expected
            assert program.parameters == sorted(expected)
