"""Devices on which a task cannot be learned or predicted: one line says so, and nothing is created."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tasks import finetune, predict, sweep
from tasks.registry import TASKS
from tests.support import pretended_gpu
from tests.support.commands import assert_one_line_error, call
from tests.support.finetuned_runs import made_run
from tests.support.own_tasks import own_task
from tests.support.tiny_task import SETTINGS, options

NO_BFLOAT16 = "optimizer.precision: bfloat16 needs a GPU of compute capability 8.0 or higher (A100 or later), and Pre"


def sweep_of(task: Path, folder: Path) -> list[str]:
    paths = [str(task / "data" / "task.yaml"), str(task / "model"), "--data", str(task / "data")]
    return [*paths, "--output", str(folder / "sweep"), *SETTINGS]


@pytest.mark.parametrize(
    ("main", "arguments"),
    [
        (finetune.main, lambda task, folder: options(task, folder / "run")),
        (finetune.main, lambda task, folder: options(task, folder / "run", "--check")),
        (sweep.main, sweep_of),
    ],
    ids=["finetune", "check", "sweep"],
)
def test_a_device_that_lacks_what_a_run_needs_is_refused(
    tiny_task: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    main: Callable[[], None],
    arguments: Callable[[Path, Path], list[str]],
) -> None:
    def refused(message: str, *more: Any) -> None:
        done = call(main, *arguments(tiny_task, tmp_path), *map(str, more))
        assert_one_line_error(done, message)
        assert not list(tmp_path.iterdir())

    refused("trainer.device: gpu asked for, but this Paddle is the package for CPUs", "--trainer.device=gpu")
    # The sweep asks another process, which pretends too.
    for name, value in pretended_gpu.environment(2, "7.5").items():
        monkeypatch.setenv(name, value)
    pretended_gpu.pretend(2, (7, 5), monkeypatch.setattr)
    refused(NO_BFLOAT16, "--optimizer.precision=bfloat16")
    if main == sweep.main:
        refused("NPROC: 3 processes on this machine, but Paddle sees 2 GPUs", "--processes", 3)


def test_prediction_on_a_device_that_is_not_there_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, output = made_run(tmp_path / "run", TASKS["rte"]), tmp_path / "answers.jsonl"
    own_task(tmp_path / "data", "classification")
    before = sorted(tmp_path.rglob("*"))

    def refused(message: str, *more: Any) -> None:
        arguments = [run, "--input", tmp_path / "data" / "own.jsonl", "--output", output, *more]
        done = call(predict.main, *map(str, arguments))
        assert_one_line_error(done, message)
        assert sorted(tmp_path.rglob("*")) == before

    refused("--device: gpu asked for, but this Paddle is the package for CPUs", "--device", "gpu")
    pretended_gpu.pretend(2, replace=monkeypatch.setattr)
    refused("NPROC: 3 processes on this machine, but Paddle sees 2 GPUs", "--processes", 3)
    monkeypatch.setenv("FLAGS_selected_gpus", "5")
    refused("FLAGS_selected_gpus: GPU 5 asked for, but Paddle sees 2 GPUs")
