"""Skipped updates and the scale of the loss: overflows, NaN in the data, resuming, and the end after many skips.

The scale does not depend on the precision, so all of this is float32. At a scale near 2^66 the squared norm of the
gradient exceeds the largest float32, which is an overflow like that of a float16.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import paddle
import pytest

from ernie_gram.run import checkpoint
from ernie_gram.run.checkpoint import Arrays
from ernie_gram.run.run_log import read_log
from ernie_gram.training import loss_scale
from ernie_gram.training.loss_scale import UpdateGuard, guard_state
from reader.errors import InputError
from tests.support.objectives import load
from tests.support.runs import trained_steps
from tests.support.static_programs import fresh_program
from tests.support.toy_classifier import SETTINGS

# A step whose batch has a NaN, counted from 0.
BAD_STEP = 5
Train = Callable[..., str]
EACH_STEP = {"steps": 12, "log_every": 1, "save_every": 1, "eval_every": 100, "keep_checkpoints": 99}


def scaled(loss_scale: float) -> dict[str, Any]:
    """Return the settings of a run with this scale of the loss."""
    return {**EACH_STEP, "optimizer": dataclasses.replace(SETTINGS, loss_scale=loss_scale)}


def state_after(folder: Path, step: int) -> Arrays:
    """Return the parameters, moments and powers after a step."""
    path = folder / f"step_{step}"
    return checkpoint.load_model(path) | checkpoint.load_optimizer(path)


def equal(one: Arrays, two: Arrays) -> bool:
    return all(np.array_equal(one[name], two[name]) for name in one.keys() | two.keys())


def guards(folder: Path) -> list[dict[str, float]]:
    return [checkpoint.load_state(path).guard for path in checkpoint.checkpoints(folder)]


def test_a_power_of_two_as_scale_changes_no_bit_of_the_result(
    train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loss_scale, "LOSS_SCALE_STEPS", 5)
    train(tmp_path / "plain", **EACH_STEP)
    train(tmp_path / "scaled", **scaled(8.0))
    assert equal(state_after(tmp_path / "plain", 12), state_after(tmp_path / "scaled", 12))
    assert [guard["loss_scale"] for guard in guards(tmp_path / "scaled")] == [8.0] * 4 + [16.0] * 5 + [32.0] * 3
    assert checkpoint.load_state(tmp_path / "plain" / "step_12").guard == {}


@pytest.mark.parametrize("micro_batch", [None, 12])
def test_an_overflow_halves_the_scale_and_changes_nothing_else(
    train: Train, tmp_path: Path, micro_batch: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loss_scale, "LOSS_SCALE_STEPS", 4)
    console = train(tmp_path, **scaled(2.0**66), micro_batch=micro_batch)
    states, found = [state_after(tmp_path, step) for step in range(1, 13)], guards(tmp_path)
    skipped = [step for step in range(1, 12) if found[step]["skipped"] > found[step - 1]["skipped"]]
    first = int(found[0]["skipped"])
    assert first == 1  # the first update is one of those that are skipped
    assert skipped
    for step in range(1, 12):
        was_skipped = step in skipped
        assert equal(states[step], states[step - 1]) == was_skipped
        if was_skipped:
            assert found[step]["loss_scale"] == found[step - 1]["loss_scale"] / 2
            assert found[step]["good_steps"] == 0
    assert found[-1]["loss_scale"] < 2.0**66
    assert found[-1]["skipped"] == len(skipped) + first == console.count("update skipped, the loss is 0.")
    records = [record for record in read_log(tmp_path) if record["kind"] == "train"]
    assert [record["skipped"] for record in records] == [guard["skipped"] for guard in found]
    assert [record["loss_scale"] for record in records] == [guard["loss_scale"] for guard in found]
    assert all("loss" in record for record in records)
    assert ["grad_norm" in record for record in records] == [guard["skipped_in_a_row"] == 0 for guard in found]


def test_a_resumed_run_continues_with_the_same_scale(
    train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loss_scale, "LOSS_SCALE_STEPS", 3)
    train(tmp_path / "whole", **scaled(2.0**66))
    for first, last in pairwise([0, 1, 2, 7, 12]):
        console = train(tmp_path / "parts", **scaled(2.0**66) | {"steps": last})
        assert trained_steps(console) == [*range(first + 1, last + 1)]
    assert guards(tmp_path / "parts") == guards(tmp_path / "whole")
    assert equal(state_after(tmp_path / "parts", 12), state_after(tmp_path / "whole", 12))


@pytest.mark.parametrize(
    ("settings", "step", "message"),
    [
        (scaled(4.0), BAD_STEP, "the loss is nan, its gradient nan; stopped"),
        (EACH_STEP | {"micro_batch": 12}, BAD_STEP, "the loss is nan, its gradient nan; stopped"),
        (scaled(2.0**100) | {"max_skipped": 3}, 2, "3 updates in a row were skipped"),
    ],
)
def test_training_stops_and_no_checkpoint_holds_a_nan(
    train: Train, tmp_path: Path, settings: dict[str, Any], step: int, message: str
) -> None:
    with pytest.raises(InputError, match=f"step {step + 1}: {message}"):
        train(tmp_path, **settings, bad_steps=range(BAD_STEP, 99))
    saved = checkpoint.checkpoints(tmp_path)
    assert saved[-1].name == f"step_{step}"
    assert all(np.isfinite(values).all() for values in state_after(tmp_path, step).values())


def test_the_scale_is_never_below_1() -> None:
    with fresh_program() as (executor, main, startup):
        norm = paddle.static.data("norm", [], "float32")
        guard = UpdateGuard(2.0)
        guard.judge(paddle.ones([]), norm)
        executor.run(startup)
        for count in range(3):
            executor.run(main, feed={"norm": np.array(np.inf, np.float32)})
            assert list(guard_state().values()) == [1, 0, count + 1, count + 1]


@pytest.mark.parametrize(
    "option",
    [
        *("optimizer.loss_scale=3", "optimizer.loss_scale=0.5", "trainer.max_skipped=0", "trainer.micro_batch=0"),
        *(f"trainer.peak_tflops={peak}" for peak in (0.0, -1.0, ".nan")),
    ],
)
def test_invalid_settings_are_refused(option: str) -> None:
    with pytest.raises(InputError, match=option.partition("=")[0]):
        load(f"--{option}")


def test_float16_scales_the_loss() -> None:
    assert load("--optimizer.precision=float16").optimizer.first_loss_scale == 2.0**16
    assert load("--optimizer.precision=float16", "--optimizer.loss_scale=4").optimizer.first_loss_scale == 4
    assert load("--optimizer.precision=bfloat16").optimizer.first_loss_scale is None
