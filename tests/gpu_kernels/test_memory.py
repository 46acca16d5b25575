"""What a half-precision step on a GPU keeps of the attention scores is what the preflight predicts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ernie_gram.gpu_checks.programs import SIZES, pretraining_config
from ernie_gram.planning.encoder_memory import ACTIVATIONS
from ernie_gram.planning.memory import rank_memory
from ernie_gram.pretraining.sizes import BatchShape
from tests.support.static_programs import training_program

SHAPE = BatchShape(8, 100, 10.0)
BYTES = {"FLOAT32": 4, "BFLOAT16": 2, "FLOAT16": 2, "UINT8": 1}


def kept_bytes_per_score(program: Any, heads: int) -> int:
    """Return the bytes of the values [B, A, L, L] of a program that its backward pass reads, per score of a layer."""
    operations = program.global_block().ops
    first = next(i for i, each in enumerate(operations) if each.name().endswith("_grad"))
    views = ("pd_op.split", "pd_op.unbind")
    made = {
        value.id: value.dtype.name
        for each in operations[:first]
        if each.name() not in views
        for value in each.results()
        if value.initialized() and value.is_dense_tensor_type() and list(value.shape) == [-1, heads, -1, -1]
    }
    read = {
        value.id
        for each in operations[first:]
        for value in each.operands_source()
        if value.initialized() and value.id in made and not each.is_no_need_buffer(value)
    }
    return sum(BYTES[made[value]] for value in read)


@pytest.mark.parametrize("precision", ["float32", "bfloat16", "float16"])
def test_the_scores_that_a_step_keeps_are_predicted(precision: str, gpu: Any) -> None:
    config = pretraining_config("explicit", precision, "--model.attention_probs_dropout_prob=0.1")
    config = replace(config, model=replace(config.model, use_relative_position=False))
    layers, heads = config.model.num_hidden_layers, config.model.num_attention_heads

    def activations(number: int) -> int:
        model = replace(config.model, num_attention_heads=number)
        return rank_memory(replace(config, model=model), SIZES, SHAPE, 1, cpu=False).parts[ACTIVATIONS]

    predicted = (activations(2 * heads) - activations(heads)) / (heads * layers * SHAPE.rows * SHAPE.slots)
    kept = kept_bytes_per_score(training_program(config, SIZES).main, heads)
    assert kept == layers * {"float32": 9, "bfloat16": 5, "float16": 5}[precision]
    assert predicted == kept / layers
