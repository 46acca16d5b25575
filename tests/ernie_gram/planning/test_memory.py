"""The predicted memory is what Paddle allocates for a step, within a tenth; and it reacts to settings as tensors do."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from ernie_gram.model.config import ModelConfig
from ernie_gram.planning.encoder_memory import ACTIVATIONS, largest_bucket
from ernie_gram.planning.memory import rank_memory
from ernie_gram.pretraining.config import DataConfig, PretrainConfig
from ernie_gram.pretraining.sizes import BatchShape, CorpusSizes
from ernie_gram.training.config import OptimizerConfig, TrainerConfig
from tests.benchmarks import pretrain_step
from tests.support.bfloat16 import skip_where_refused
from tests.support.further_cases import only
from tests.support.objectives import OBJECTIVES

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
# Memory is mostly tables of classes, or rows; tests/benchmarks/pretrain_step.py has larger models and all objectives.
CASES = {
    "classes": ("explicit", 2, 48, 60_000, {"hidden_size": 48, "num_attention_heads": 3, "out_emb_size": 0}),
    "rows, bfloat16": ("contiguous", 24, 48, 0, {"hidden_size": 96, "num_attention_heads": 3, "precision": "bfloat16"}),
    "recompute": ("explicit", 4, 256, 0, {"hidden_size": 96, "num_attention_heads": 6, **RECOMPUTE}),
    "generator": ("enrm", 16, 96, 0, {"hidden_size": 96, "num_attention_heads": 6}),
    "mask": ("contiguous", 4, 256, 0, {"hidden_size": 96, "num_attention_heads": 6, **MASK}),
    "mask, recompute": ("contiguous", 4, 256, 0, {"hidden_size": 96, "num_attention_heads": 6, **MASK, **RECOMPUTE}),
}


@pytest.mark.parametrize("case", only(CASES.keys() - {"recompute", "classes"}, CASES))
def test_memory_is_what_paddle_allocates(case: str) -> None:
    from tests.support.paddle_program import step_memory
    from tests.support.static_programs import training_program

    rung, sequences, length, ngrams, settings = CASES[case]
    skip_where_refused(settings.get("precision", "float32"))
    config = config_of(rung, sequences, length, **settings)
    slots, predicted, queries = pretrain_step.shapes(length, rung)
    batch = pretrain_step.random_batch(sequences, length, TOKENS + ngrams, rung)
    allocated = step_memory(partial(training_program, config, CorpusSizes(TOKENS, ngrams)), batch)
    shape = BatchShape(sequences, slots, predicted, queries, queries)
    memory, error = rank_memory(config, CorpusSizes(TOKENS, ngrams), shape, 1, cpu=True), 0.1
    assert memory.total == pytest.approx(allocated, rel=error)
    # Parameters and moments are exact, so the rest alone must be near as well.
    known = memory.parameters + memory.moments
    assert memory.total - known == pytest.approx(allocated - known, rel=1.5 * error)


SIZES = CorpusSizes(1000, 500)
SHAPE = BatchShape(8, 100, 10.0)


def test_memory_with_recompute_hardly_grows_with_the_layers() -> None:
    def activations(recompute: bool, layers: int) -> int:
        settings = {"hidden_size": 48, "num_attention_heads": 12, "num_hidden_layers": layers}
        config = config_of("explicit", 8, 128, recompute=recompute, **settings)
        return rank_memory(config, SIZES, SHAPE, 1, cpu=False).parts[ACTIVATIONS]

    # A layer keeps its output, 4 bytes per number, and the masks of dropout: two for rows, one for the scores.
    kept = SHAPE.rows * (48 * (4 + 2) + SHAPE.slots * 12)
    assert activations(True, 24) - activations(True, 4) == 20 * kept
    assert activations(True, 24) < activations(False, 24) / 4


def test_the_last_moment_is_largest_if_there_are_more_parameters_than_activations() -> None:
    config = config_of("explicit", 1, 16, hidden_size=96, num_attention_heads=3, num_hidden_layers=6)
    alone, together = (rank_memory(config, SIZES, BatchShape(1, 8, 1.0), ranks, cpu=True) for ranks in (1, 2))
    assert alone.moment == "update"
    assert alone.total == 4 * alone.parameters
    # All of these gradients are in one bucket, which is a copy.
    assert together.total == 5 * alone.parameters


def test_a_table_that_is_exchanged_by_row_is_not_copied() -> None:
    sizes, shape = CorpusSizes(100, 400_000), BatchShape(1, 8, 1.0)
    table = 400_000 * 48
    config = config_of("full", 2, 16, hidden_size=48, num_attention_heads=3, out_emb_size=8)
    memory = rank_memory(config, sizes, shape, 2, cpu=True)
    assert memory.moment == "update"
    # A bucket, of which the output table is the largest tensor.
    assert memory.parts["exchange"] == pytest.approx(4 * 400_100 * 8, rel=0.5)
    # The moment of the largest number of rows: all of them, in two copies.
    many = replace(config, data=replace(config.data, batch_size=10**8))
    assert rank_memory(many, sizes, shape, 2, cpu=True).parts["exchange"] == pytest.approx(8 * table, rel=0.01)


def test_the_largest_bucket_holds_the_largest_tensors_that_are_exchanged_together() -> None:
    assert largest_bucket([5, 6], 1) == 0
    million = 1 << 20
    assert largest_bucket([million, 200 * million, 9 * million, million], 2) == 201 * million
