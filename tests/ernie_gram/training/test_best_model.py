"""The best evaluation of a run is kept, and survives a stop at any point."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ernie_gram.run import checkpoint
from ernie_gram.run.run_log import read_log
from ernie_gram.training.job import Progress
from ernie_gram.training.trainer import Trainer
from reader.errors import InputError, SystemRefusedError
from tests.support.runs import trained_steps
from tests.support.toy_classifier import ToyEvaluator

# Accuracies that the toy job "measures" at steps 10, 20, ...: the best is that of step 30.
SCRIPT = [0.5, 0.6, 0.8, 0.7, 0.8, 0.6, 0.5, 0.9, 0.1, 0.1, 0.1, 0.1]


def walk(values: list[float]) -> Progress:
    progress = Progress()
    for step, value in enumerate(values, 1):
        progress = progress.after(step, value)
    return progress


def test_the_first_of_equal_values_is_the_best_and_every_number_is_better_than_nan() -> None:
    values = [2.0, 3.0, 1.0, 3.0, 1.0]
    assert walk(values) == Progress(5, 2, 3.0)
    assert walk([math.nan, -5.0, math.nan]) == Progress(3, 2, -5.0)
    assert walk([math.nan, math.nan]).best_step == 1


@pytest.fixture
def select(train: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Return a function that trains the toy job, whose evaluations follow SCRIPT, and returns its console output."""
    measured: list[int] = []

    def measure(trainer: Trainer) -> None:
        measured[:] = [trainer.step]
        evaluate(trainer)

    evaluate = Trainer.evaluate
    monkeypatch.setattr(Trainer, "evaluate", measure)
    monkeypatch.setattr(ToyEvaluator, "__call__", lambda *_: {"accuracy": SCRIPT[measured[0] // 10 - 1]})

    def call(folder: Path, **options: int) -> str:
        return train(folder, eval_every=10, selection="accuracy", **options)

    return call


def evaluated(folder: Path) -> list[tuple[int, float]]:
    return [(record["step"], record["accuracy"]) for record in read_log(folder) if record["kind"] == "eval"]


def test_the_best_model_is_kept_whole(select: Callable[..., str], tmp_path: Path) -> None:
    select(tmp_path, save_every=10)
    assert evaluated(tmp_path) == [(10 * (i + 1), value) for i, value in enumerate(SCRIPT)]
    assert checkpoint.best_step(tmp_path) == 80
    best, whole = checkpoint.load_model(tmp_path / "best"), checkpoint.load_model(tmp_path / "step_80")
    np.testing.assert_equal(best, whole)
    files = {checkpoint.CHECKSUMS, checkpoint.MODEL, checkpoint.STATE}
    assert {path.name for path in (tmp_path / "best").iterdir()} == files
    model = tmp_path / "best" / checkpoint.MODEL
    model.write_bytes(model.read_bytes()[:-1])
    with pytest.raises(
        InputError, match=r"best/model\.safetensors: truncated or altered.*; remove .*best, and the best"
    ):
        checkpoint.best_step(tmp_path)
    shutil.rmtree(tmp_path / "best")
    assert checkpoint.best_step(tmp_path) is None


def test_a_best_model_that_the_system_refuses_is_written_with_the_next_checkpoint(
    select: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusals, save = [False, False, True], checkpoint.save_best

    def save_best(*arguments: Any) -> None:
        if refusals.pop(0):
            raise OSError(28, "No space left")
        save(*arguments)

    monkeypatch.setattr(checkpoint, "save_best", save_best)
    refusals.append(False)
    select(tmp_path / "again", save_every=40, steps=50)
    assert checkpoint.best_step(tmp_path / "again") == 30
    refusals += [False, True, True, True, True]
    with pytest.raises(SystemRefusedError, match=r"best is not saved: .*No space left; make room, and run the same"):
        select(tmp_path / "never", save_every=40, steps=50)
    assert refusals == []
    assert checkpoint.best_step(tmp_path / "never") == 10


@pytest.mark.parametrize(
    ("stop", "lost"),
    [(20, "evaluation"), (20, "nothing"), (30, "evaluation"), (30, "nothing"), (30, "steps"), (50, "steps")],
)
def test_a_run_stopped_anywhere_ends_as_if_it_had_not_been(
    select: Callable[..., str], tmp_path: Path, stop: int, lost: str
) -> None:
    """`steps` simulates a kill between two checkpoints, `evaluation` one between a checkpoint and its evaluation."""
    select(tmp_path / "parts", save_every=20, steps=stop)
    if lost == "evaluation":
        lines = (tmp_path / "parts" / "log.jsonl").read_text().splitlines(keepends=True)
        (tmp_path / "parts" / "log.jsonl").write_text("".join(lines[:-1]))
    if lost == "steps" and stop % 20:
        shutil.rmtree(tmp_path / "parts" / f"step_{stop}")
    console = select(tmp_path / "parts", save_every=20, steps=60)
    assert trained_steps(console)[0] == 10 + (stop // 20 * 20 if lost == "steps" else stop)
    assert evaluated(tmp_path / "parts") == [(10 * (i + 1), value) for i, value in enumerate(SCRIPT[:6])]
    state = checkpoint.load_state(tmp_path / "parts" / "step_60")
    # It was written before the evaluation of its step.
    assert (state.selection["step"], state.selection["best_step"]) == (50, 30)
    assert checkpoint.best_step(tmp_path / "parts") == 30
    assert np.isclose(checkpoint.load_state(tmp_path / "parts" / "best").selection["best"], 0.8)
