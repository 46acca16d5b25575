"""Programs for a CPU with attention in one operation, against the same programs of single operations."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ernie_gram.pretraining.sizes import CorpusSizes
from tests.support.small_model import MODEL, NGRAMS, TOKENS, config_of, random_batch
from tests.support.static_programs import fresh_scope, training_program

import paddle  # isort: skip

from ernie_gram.kernels.selection import can_fuse_attention
from ernie_gram.pretraining.programs import build_evaluation
from ernie_gram.training import program as training
from ernie_gram.training.program import Program
from ernie_gram.training.variables import get_arrays

SIZES = CorpusSizes(TOKENS, NGRAMS)
ATTENTION, GRADIENT = "py_op.compiled_attention_0", "py_op.compiled_attention_backward"


def count(program: Program, name: str) -> int:
    return sum(operation.name().startswith(name) for operation in program.main.global_block().ops)


def train(
    rung: str, relative: bool = True, dropout: float = 0.0, recompute: bool = False
) -> tuple[list[float], dict[str, np.ndarray], Program]:
    """Return the losses and norms of three updates, the parameters, and the program."""
    rates = {"hidden_dropout_prob": dropout, "attention_probs_dropout_prob": dropout}
    config = config_of(rung, replace(MODEL, use_relative_position=relative, **rates))
    config = replace(config, trainer=replace(config.trainer, recompute=recompute))
    numbers: list[float] = []
    with fresh_scope() as executor:
        program = training_program(config, SIZES)
        paddle.seed(1)
        executor.run(program.startup)
        for step in range(3):
            values = program.run(executor, random_batch(rung, step))
            numbers += [float(value) for _, value in sorted(values.items())]
        return numbers, dict(zip(program.parameters, get_arrays(program.parameters).values(), strict=True)), program


def without_fusing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "can_fuse_attention", lambda: False)


def test_this_paddle_can_build_it() -> None:
    """If this fails after an update of Paddle: kernels/registered.py and kernels/blas.py are bound to its files."""
    assert can_fuse_attention()


@pytest.mark.parametrize(("rung", "relative"), [("explicit", True), ("contiguous", False), ("both", True)])
def test_training_is_the_same(rung: str, relative: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    found, ours, program = train(rung, relative)
    encoders = 2 if rung == "both" else 1
    assert count(program, ATTENTION) == count(program, GRADIENT) == 2 * encoders
    assert count(program, "pd_op.unbind") == (2 * 2 if rung == "both" else 0)  # those that query rows read
    without_fusing(monkeypatch)
    expected, theirs, plain = train(rung, relative)
    assert count(plain, ATTENTION) == 0
    assert found == pytest.approx(expected, rel=1e-5)
    for name, value in ours.items():
        assert np.allclose(value, theirs[name], atol=1e-5), name


@pytest.mark.parametrize("rung", ["explicit", "both"])
def test_recompute_changes_no_bit(rung: str) -> None:
    """The attention is not computed again, so its masks are not drawn again either."""
    found, ours, program = train(rung, dropout=0.1, recompute=True)
    expected, theirs, _ = train(rung, dropout=0.1)
    assert count(program, ATTENTION) == count(program, GRADIENT)
    assert found == expected
    assert all(np.array_equal(value, theirs[name]) for name, value in ours.items())


def test_evaluation_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    config, results = config_of("both"), []
    for fuses in (True, False):
        if not fuses:
            without_fusing(monkeypatch)
        with fresh_scope() as executor:
            program = build_evaluation(config, SIZES, 1)
            assert bool(count(program, ATTENTION)) == fuses
            paddle.seed(1)
            executor.run(program.startup)
            results.append(program.run(executor, random_batch("both")))
    for name, value in results[0].items():
        assert np.allclose(value, results[1][name], rtol=1e-5, atol=1e-5), name
