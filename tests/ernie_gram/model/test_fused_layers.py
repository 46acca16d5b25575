"""Programs for a CPU with encoder layers, and the softmax over classes, in one operation, against single ones."""

from __future__ import annotations

import re
from dataclasses import replace
from unittest.mock import Mock

import numpy as np
import paddle
import pytest

from ernie_gram.formats.parameters import encoder_shapes
from ernie_gram.graph import can_fuse
from ernie_gram.model import encoder
from ernie_gram.pretraining.network import build_evaluation
from ernie_gram.pretraining.sizes import CorpusSizes
from ernie_gram.training import program as training
from ernie_gram.training.program import Program
from ernie_gram.training.variables import get_arrays
from tests.support.model_folders import encoder_output_for, random_arrays
from tests.support.small_model import MODEL, NGRAMS, TOKENS, config_of, random_batch
from tests.support.static_programs import fresh_scope, training_program

SIZES = CorpusSizes(TOKENS, NGRAMS)
LAYER, GRADIENT = r"encoder_layers_\d+", r"encoder_layer_backward_\d+"


def count(program: Program, name: str) -> int:
    operations = program.main.global_block().ops
    operations += [inner for operation in operations for block in operation.blocks() for inner in block.ops]
    return sum(re.fullmatch(rf"py_op\.compiled_{name}", operation.name()) is not None for operation in operations)


def train(rung: str, relative: bool) -> tuple[list[float], dict[str, np.ndarray], Program]:
    """Return the losses and norms of three updates, the parameters, and the program."""
    config = config_of(rung, replace(MODEL, use_relative_position=relative))
    numbers: list[float] = []
    with fresh_scope() as executor:
        program = training_program(config, SIZES)
        paddle.seed(1)
        executor.run(program.startup)
        for step in range(3):
            values = program.run(executor, random_batch(rung, step))
            numbers += [float(value) for _, value in sorted(values.items())]
        return numbers, dict(zip(program.parameters, get_arrays(program.parameters).values(), strict=True)), program


@pytest.fixture(autouse=True)
def no_sampling(monkeypatch: pytest.MonkeyPatch) -> None:
    """The generator's best guesses take the place of its samples, for which both draw other numbers."""
    monkeypatch.setattr("ernie_gram.kernels.classes.draw", lambda p, *others: p.argmax(-1, others[-1]))
    monkeypatch.setattr("ernie_gram.pretraining.chunked_softmax._sample", lambda p, _: p.argmax(-1))


def without_fusing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "can_fuse", lambda: False)


def test_this_paddle_can_build_it() -> None:
    """If this fails after an update of Paddle: kernels/blas.py is bound to its files."""
    assert can_fuse()


# "both" has all of the others.
RUNGS = [("contiguous", False), ("cnp", True), ("both", True)]


@pytest.mark.parametrize(("rung", "relative"), RUNGS)
def test_training_is_the_same(rung: str, relative: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    found, ours, program = train(rung, relative)
    # The layers of the main encoder and of the generator.
    attends = {"contiguous": 2, "cnp": 2, "both": 4}[rung]
    assert count(program, LAYER) == count(program, GRADIENT) == attends
    assert "pd_op.softmax" not in {operation.name() for operation in program.main.global_block().ops}
    without_fusing(monkeypatch)
    expected, theirs, plain = train(rung, relative)
    assert count(plain, LAYER) == 0
    assert found == pytest.approx(expected, rel=1e-5)
    for name, value in ours.items():
        assert np.allclose(value, theirs[name], atol=1e-5), name


def test_evaluation_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    config, results = config_of("both"), []
    for fuses in (True, False):
        if not fuses:
            without_fusing(monkeypatch)
        with fresh_scope() as executor:
            program = build_evaluation(config, SIZES, 1)
            assert bool(count(program, LAYER)) == fuses
            paddle.seed(1)
            executor.run(program.startup)
            results.append(program.run(executor, random_batch("both")))
    for name, value in results[0].items():
        assert np.allclose(value, results[1][name], rtol=1e-5, atol=1e-5), name


def test_padding_is_left_out() -> None:
    """Rows of padding are 0; a length that is larger than the width is refused."""
    config, ids = replace(MODEL, vocab_size=TOKENS), np.full((2, 9), 5)
    given = config, random_arrays(encoder_shapes(config)), ids
    (hidden,) = encoder_output_for(*given, np.array([4, 9]), 0 * ids)
    assert hidden.any(-1).tolist() == [[True] * 4 + [False] * 5, [True] * 9]
    with pytest.raises(AssertionError, match="is a length larger than the width of the batch"):
        encoder_output_for(*given, np.array([4, 12]), 0 * ids)


def test_each_dropout_has_its_own_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    layers = Mock(wraps=encoder.encoder_layers)
    monkeypatch.setattr(encoder, "encoder_layers", layers)
    config = config_of("both", replace(MODEL, hidden_dropout_prob=0.25, attention_probs_dropout_prob=0.5))
    with fresh_scope():
        training_program(config, SIZES)
    settings = [call.args[3] for call in layers.call_args_list]
    assert {(each.dropout, each.attention_dropout) for each in settings} == {(0.25, 0.5)}
