"""Devices on which a run or a prediction cannot compute: one line says so, and nothing is created."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ernie_gram import preflight, pretrain
from tasks import finetune, predict
from tasks.registry import TASKS
from tests.support import pretended_gpu, runs, tiny_task
from tests.support.commands import assert_one_line_error, call
from tests.support.finetuned_runs import made_run
from tests.support.own_tasks import own_task

NO_GPU = "trainer.device: gpu asked for, but this Paddle is the package for CPUs (paddlepaddle); install paddlepaddle-"
NO_BFLOAT16 = "optimizer.precision: bfloat16 needs a GPU of compute capability 8.0 or higher (A100 or later), and Pre"
# A run that is not refused should end soon.
SHORT = ["--trainer.max_steps=3", "--optimizer.warmup_steps=1", "--optimizer.decay_steps=3"]


def pretraining(built: Path, task: Path, folder: Path) -> list[str]:
    return [*runs.options(built, folder / "run"), *SHORT]


def finetuning(built: Path, task: Path, folder: Path) -> list[str]:
    return tiny_task.options(task, folder / "run")


@pytest.mark.parametrize(
    ("main", "arguments", "more"),
    [
        (pretrain.main, pretraining, []),
        (pretrain.main, pretraining, ["--check"]),
        (preflight.main, pretraining, ["--bandwidth=1GB"]),
        (finetune.main, finetuning, []),
        (finetune.main, finetuning, ["--check"]),
    ],
    ids=["pretrain", "pretrain --check", "preflight", "finetune", "finetune --check"],
)
def test_a_device_that_lacks_what_a_run_needs_is_refused(
    built: Path,
    tiny_task: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    main: Callable[[], None],
    arguments: Callable[[Path, Path, Path], list[str]],
    more: list[str],
) -> None:
    def refused(message: str, *changes: Any) -> None:
        done = call(main, *arguments(built, tiny_task, tmp_path), *more, *map(str, changes))
        assert_one_line_error(done, message)
        assert not list(tmp_path.iterdir())

    refused(NO_GPU, "--trainer.device=gpu")
    if arguments is pretraining:
        refused("optimizer.precision: float16 needs a GPU", "--optimizer.precision=float16")
    # The launcher asks another process, which pretends too.
    for name, value in pretended_gpu.environment(2, "7.5").items():
        monkeypatch.setenv(name, value)
    pretended_gpu.pretend(2, (7, 5), monkeypatch.setattr)
    refused(NO_BFLOAT16, "--optimizer.precision=bfloat16")
    monkeypatch.setenv("FLAGS_selected_gpus", "2")
    refused("FLAGS_selected_gpus: GPU 2 asked for, but Paddle sees 2 GPUs", "--trainer.device=gpu")


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
