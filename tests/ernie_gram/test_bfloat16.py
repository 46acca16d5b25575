"""Pre-training on a CPU with the factors of products in bfloat16: what holds in float32 holds there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ernie_gram.run.run_log import last_evaluation
from tests.support.bfloat16 import needs_bfloat16
from tests.support.objectives import as_options
from tests.support.runs import NO_DROPOUT, pretrain, train_losses

# Products of the other tests' models are too small to be rounded.
LARGER = ["--model.hidden_size=72", "--model.num_attention_heads=2", "--model.out_emb_size=40", *as_options("cnp")]
STEPS = ["--trainer.max_steps=8", "--optimizer.decay_steps=8", "--trainer.eval_sequences=80"]
HALF = [*LARGER, *STEPS, "--optimizer.precision=bfloat16"]

pytestmark = needs_bfloat16


@pytest.fixture(scope="module")
def whole(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run in bfloat16 without dropout."""
    output = tmp_path_factory.mktemp("bfloat16") / "run"
    done = pretrain(built, output, *HALF, *NO_DROPOUT).ok()
    assert "matrix products in bfloat16" in done.stdout
    return output


def test_factors_are_rounded_and_losses_stay_close_to_float32(built: Path, tmp_path: Path, whole: Path) -> None:
    pretrain(built, tmp_path / "run", *LARGER, *STEPS, *NO_DROPOUT).ok()
    half, single = (np.array([loss for _, loss, _ in train_losses(each)]) for each in (whole, tmp_path / "run"))
    assert not np.array_equal(half, single)
    assert (np.abs(half / single - 1) < 0.01).all()
    evaluations = [last_evaluation(each) for each in (whole, tmp_path / "run")]
    assert evaluations[0]["perplexity"] == pytest.approx(evaluations[1]["perplexity"], rel=0.05)


def test_micro_batches_make_nearly_the_same_updates(built: Path, tmp_path: Path, whole: Path) -> None:
    """Sums of gradients are rounded differently, and a rounding error of float32 can become one of bfloat16."""
    pretrain(built, tmp_path / "parts", *HALF, *NO_DROPOUT, "--trainer.micro_batch=3").ok()
    losses, expected = (np.array([loss for _, loss, _ in train_losses(each)]) for each in (tmp_path / "parts", whole))
    assert losses == pytest.approx(expected, rel=2e-3)
