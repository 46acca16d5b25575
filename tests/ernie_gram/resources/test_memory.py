"""The predicted memory is near what Paddle allocates for a step; and it reacts to settings as tensors do."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from ernie_gram.distributed.processor import no_bfloat16
from ernie_gram.model.config import ModelConfig
from ernie_gram.pretraining.config import DataConfig, PretrainConfig
from ernie_gram.pretraining.sizes import BatchShape, CorpusSizes, assumed_shape
from ernie_gram.resources.memory import step_memory
from ernie_gram.training.config import OptimizerConfig, TrainerConfig
from tests.benchmarks import pretrain_step
from tests.support import paddle_program
from tests.support.further_cases import only
from tests.support.objectives import OBJECTIVES
from tests.support.random_step import random_batch
from tests.support.static_programs import training_program

TOKENS = pretrain_step.TOKENS


def config_of(
    rung: str, sequences: int, length: int, precision: Any = "float32", recompute: bool = False, **model: Any
) -> PretrainConfig:
    return PretrainConfig(
        model=ModelConfig(**{"num_hidden_layers": 2, "out_emb_size": 32, "max_position_embeddings": length, **model}),
        data=DataConfig(max_seq_len=length, batch_size=sequences),
        objective=OBJECTIVES[rung],
        optimizer=OptimizerConfig(precision=precision),
        trainer=TrainerConfig(recompute=recompute),
    )


# The bias of the scores is only the mask of padding.
MASK = {"use_relative_position": False}
RECOMPUTE = {"recompute": True, "num_hidden_layers": 3}
NARROW, WIDE = {"hidden_size": 96, "num_attention_heads": 6}, {"hidden_size": 192, "num_attention_heads": 6}
# Memory is mostly tables of classes, or rows; tests/benchmarks/pretrain_step.py has larger models and all objectives.
CASES = {
    "classes": ("explicit", 2, 48, 60_000, {"hidden_size": 48, "num_attention_heads": 3, "out_emb_size": 0}),
    "rows": ("explicit", 24, 64, 0, WIDE),
    "generator": ("full", 6, 64, 20_000, {**NARROW, "out_emb_size": 96}),
    "rows, bfloat16": ("contiguous", 24, 48, 0, {"hidden_size": 96, "num_attention_heads": 3, "precision": "bfloat16"}),
    "recompute": ("explicit", 4, 256, 0, {**NARROW, **RECOMPUTE}),
    "mask": ("contiguous", 4, 256, 0, {**NARROW, **MASK}),
    "mask, recompute": ("contiguous", 4, 256, 0, {**NARROW, **MASK, **RECOMPUTE}),
}


@pytest.mark.parametrize("case", only({"generator", "recompute"}, CASES))
def test_memory_is_what_paddle_allocates(case: str) -> None:
    rung, sequences, length, ngrams, settings = CASES[case]
    if "precision" in settings and (reason := no_bfloat16()):
        pytest.skip(reason)
    config, sizes = config_of(rung, sequences, length, **settings), CorpusSizes(TOKENS, ngrams)
    shape = assumed_shape(config, sequences, pretrain_step.TOKENS_PER_UNIT)
    batch = random_batch(config, sizes, shape)
    allocated = paddle_program.step_memory(partial(training_program, config, sizes), batch)
    memory = step_memory(config, sizes, shape, cpu=True)
    total, known = sum(memory.values()), memory["parameters"] + memory["Adam's moments"]
    assert total == pytest.approx(allocated, rel=0.1)
    # Parameters and moments are exact, so the rest alone must be near as well.
    assert total - known == pytest.approx(allocated - known, rel=0.2)


SIZES, SHAPE = CorpusSizes(1000, 500), BatchShape(8, 100, 10.0)


def test_memory_with_recompute_hardly_grows_with_the_layers() -> None:
    def activations(recompute: bool, layers: int) -> float:
        settings = {"hidden_size": 48, "num_attention_heads": 12, "num_hidden_layers": layers}
        config = config_of("explicit", 8, 128, recompute=recompute, **settings)
        return step_memory(config, SIZES, SHAPE, cpu=False)["activations"]

    # A layer keeps its output, 4 bytes per number, and the masks of dropout: two for rows, one for the scores.
    kept = SHAPE.rows * (48 * (4 + 2) + SHAPE.slots * 12)
    assert activations(True, 24) - activations(True, 4) == 20 * kept
    assert activations(True, 24) < activations(False, 24) / 4


def test_a_layer_keeps_what_the_published_formula_says() -> None:
    """Korthikanti et al. (2022), equation 1: rows x (34 H + 5 A L) bytes if all numbers have two bytes."""
    config = config_of("explicit", 8, 128, hidden_size=48, num_attention_heads=12)
    three, two = (
        step_memory(replace(config, model=replace(config.model, num_hidden_layers=n)), SIZES, SHAPE, cpu=False)
        for n in (3, 2)
    )
    # With four bytes per number: twice as much, except for the masks, 2 H + A L.
    rows, hidden, scores = SHAPE.rows, 48, 12 * SHAPE.slots
    expected = rows * (2 * (34 * hidden + 5 * scores) - 2 * hidden - scores)
    assert three["activations"] - two["activations"] == expected
