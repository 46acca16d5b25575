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

# With dropout, what is kept is compared; without, sequences are so long that the memory is largest with the gradients
# of the scores.
SHAPES = {0.1: BatchShape(8, 100, 10.0), 0.0: BatchShape(8, 2000, 10.0)}
BYTES = {"FLOAT32": 4, "BFLOAT16": 2, "FLOAT16": 2, "UINT8": 1}


def bytes_per_score(program: Any, heads: int) -> tuple[int, set[int]]:
    """Return the bytes of the values [B, A, L, L] that a backward pass reads, and the sizes of its own."""
    operations = program.global_block().ops
    first = next(i for i, each in enumerate(operations) if each.name().endswith("_grad"))
    views = ("pd_op.split", "pd_op.unbind")

    def made_by(part: Any) -> dict[int, int]:
        return {
            value.id: BYTES[value.dtype.name]
            for each in part
            if each.name() not in views
            for value in each.results()
            if value.initialized() and value.is_dense_tensor_type() and list(value.shape) == [-1, heads, -1, -1]
        }

    made = made_by(operations[:first])
    read = {
        value.id
        for each in operations[first:]
        for value in each.operands_source()
        if value.initialized() and value.id in made and not each.is_no_need_buffer(value)
    }
    return sum(made[value] for value in read), set(made_by(operations[first:]).values())


@pytest.mark.parametrize("dropout", [0.1, 0.0])
@pytest.mark.parametrize("precision", ["float32", "bfloat16", "float16"])
def test_the_scores_that_a_step_keeps_are_predicted(precision: str, dropout: float, gpu: Any) -> None:
    config = pretraining_config("explicit", precision, f"--model.attention_probs_dropout_prob={dropout}")
    config = replace(config, model=replace(config.model, use_relative_position=False))
    shape, layers, heads = SHAPES[dropout], config.model.num_hidden_layers, config.model.num_attention_heads

    def activations(number: int) -> int:
        model = replace(config.model, num_attention_heads=number)
        return rank_memory(replace(config, model=model), SIZES, shape, 1, cpu=False).parts[ACTIVATIONS]

    predicted = (activations(2 * heads) - activations(heads)) / (heads * shape.rows * shape.slots)
    kept, of_gradients = bytes_per_score(training_program(config, SIZES).main, heads)
    size = 4 if precision == "float32" else 2
    assert kept == layers * (2 * size + 1 if dropout else size)
    assert of_gradients == {size}
    # With dropout, the gradients take the place of what was kept.
    assert predicted == kept + (0 if dropout else 2 * size)
