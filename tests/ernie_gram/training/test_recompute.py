"""Recompute: the same parameters to the bit, with dropout; and the backward pass reads nothing that should be freed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import paddle
import pytest

from ernie_gram.distributed.world import start_world
from ernie_gram.pretraining.config import PretrainConfig
from ernie_gram.pretraining.sizes import CorpusSizes
from ernie_gram.training.accumulation import Updater
from ernie_gram.training.optimization import learning_rate, set_learning_rate
from ernie_gram.training.program import open_program
from ernie_gram.training.recompute import recompute_layers
from ernie_gram.training.variables import get_arrays
from tests.support.small_model import MODEL, NGRAMS, TOKENS, config_of, random_batch
from tests.support.static_programs import Arrays, fresh_scope, training_program
from tests.support.toy_classifier import toy_job

DROPOUT = replace(MODEL, num_hidden_layers=1, hidden_dropout_prob=0.2, attention_probs_dropout_prob=0.3)
LAYERS = config_of("explicit", replace(DROPOUT, num_hidden_layers=3))
CASES = {
    # Context, query rows and a generator.
    "both": config_of("both", DROPOUT),
    # The gradients of the attention bias, which all layers read, are added in another place.
    "explicit": LAYERS,
}


# What is kept: the masks.
KEPT = {"dropout 1"}
# Constants on the host, which the whole program shares.
CONSTANTS = ("pd_op.full", "pd_op.full_int_array")


def trained(config: PretrainConfig, rung: str, steps: int = 4) -> tuple[Arrays, paddle.static.Program]:
    """Return the parameters after some steps, and the program that made them."""
    with fresh_scope() as executor:
        program = training_program(config, CorpusSizes(TOKENS, NGRAMS))
        paddle.seed(1)
        executor.run(program.startup)
        for step in range(steps):
            set_learning_rate(learning_rate(step, config.optimizer, config.decay_steps))
            paddle.seed(step)
            program.run(executor, random_batch(rung, step))
        return get_arrays(program.parameters), program.main


def kept_after_forward(main: paddle.static.Program) -> Iterator[str]:
    """Yield the operation of each result within a layer whose content is read after the last layer was computed."""
    operations = main.global_block().ops
    marked = [i for i, operation in enumerate(operations) if operation.has_attr("recompute_layer")]
    # The forward pass ends where the first gradient is computed.
    end = next(i for i, operation in enumerate(operations) if operation.name().endswith("_grad"))
    layer_of = {
        value.id: operations[i].int_attr("recompute_layer")
        for i in marked
        if i < end and operations[i].name() not in CONSTANTS
        for value in operations[i].results()
    }
    outputs = {
        value.id
        for operation in operations[:end]
        for value in operation.operands_source()
        if value.initialized()
        and value.id in layer_of
        and not (operation.has_attr("recompute_layer") and operation.int_attr("recompute_layer") == layer_of[value.id])
    }
    backward = operations[end:]
    backward += [inner for operation in backward for block in operation.blocks() for inner in block.ops]
    for operation in backward:
        for value in operation.operands_source():
            if not value.initialized() or operation.is_no_need_buffer(value):
                continue
            if value.id in layer_of and value.id not in outputs:
                # Without its dialect, and without the inputs and settings in the name of a compiled operation.
                name = value.get_defining_op().name().partition(".")[2]
                yield f"{re.sub('_[0-9].*$', '', name)} {value.index()}"


def drawn_masks(main: paddle.static.Program) -> int:
    return sum(operation.name() in ("pd_op.randint", "pd_op.dropout") for operation in main.global_block().ops)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("fuses", [True, False])
def test_recompute_changes_no_bit_and_keeps_only_masks(case: str, fuses: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ernie_gram.training.program.can_fuse", lambda: fuses)
    config = CASES[case]
    recomputing = replace(config, trainer=replace(config.trainer, recompute=True))
    (expected, without), (found, rewritten) = (trained(each, case) for each in (config, recomputing))
    assert all(np.array_equal(found[name], expected[name]) for name in expected)
    assert drawn_masks(rewritten) == drawn_masks(without) > 0
    if fuses:
        # Of a layer, its result, the attention and the sums of its scores are kept.
        results = [op.num_results() for op in rewritten.global_block().ops if "compiled_encoder_layers" in op.name()]
        assert results
        assert set(results) == {3}
    else:
        assert set(kept_after_forward(rewritten)) <= KEPT
        assert {"dropout 1", "gelu 0"} < set(kept_after_forward(without))


@pytest.mark.parametrize(("recompute", "micro_batch"), [(False, None), (True, None), (True, 12)])
def test_training_recomputes_if_the_setting_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recompute: bool, micro_batch: int | None
) -> None:
    totals: list[object] = []
    monkeypatch.setattr("ernie_gram.training.program.recompute_layers", totals.append)
    with fresh_scope():
        Updater(toy_job(tmp_path, recompute=recompute, micro_batch=micro_batch), start_world("cpu"))
    assert len(totals) == recompute


def test_a_program_without_marked_layers_is_not_changed() -> None:
    with fresh_scope(), open_program([]) as opened:
        x = paddle.static.create_parameter([3], "float32", name="x")
        total = (x * x).sum()
        paddle.static.gradients([total], [x])
        before = [operation.name() for operation in opened.main.global_block().ops]
        recompute_layers(total)
        # New operations are still added at the end.
        paddle.ones([1])
        assert [operation.name() for operation in opened.main.global_block().ops] == [*before, "pd_op.full"]
