"""Devices on which a run or a prediction cannot compute are refused before anything is created."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ernie_gram import pretrain
from tasks import finetune, predict, sweep
from tasks.registry import TASKS
from tests.support import pretended_gpu, runs, tiny_task
from tests.support.commands import assert_one_line_error, call
from tests.support.finetuned_runs import made_run
from tests.support.own_tasks import own_task


def commands(built: Path, task: Path, folder: Path) -> dict[str, tuple[Callable[[], None], list[str]]]:
    """Return commands that compute, each with a valid input, by name; predict has its input in the folder."""
    pretraining, finetuning = runs.options(built, folder / "run"), tiny_task.options(task, folder / "run")
    prediction = [str(folder / "made"), "--input", str(folder / "data/own.jsonl"), "--output", str(folder / "answers")]
    return {
        "pretrain": (pretrain.main, pretraining),
        "pretrain --check": (pretrain.main, [*pretraining, "--check"]),
        "finetune": (finetune.main, finetuning),
        "finetune --check": (finetune.main, [*finetuning, "--check"]),
        "predict": (predict.main, prediction),
    }


@pytest.mark.parametrize("name", ["pretrain", "pretrain --check", "finetune", "finetune --check", "predict"])
def test_a_device_that_lacks_what_a_command_needs_is_refused(
    built: Path, tiny_task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    if name == "predict":
        made_run(tmp_path / "made", TASKS["rte"])
        own_task(tmp_path / "data", "classification")
    main, arguments = commands(built, tiny_task, tmp_path)[name]
    before = sorted(tmp_path.rglob("*"))

    def refused(key: str, *changes: Any) -> None:
        assert_one_line_error(call(main, *arguments, *map(str, changes)), f"{key}: ")
        assert sorted(tmp_path.rglob("*")) == before

    device = "--device" if name == "predict" else "trainer.device"
    on_gpu = ["--device=gpu"] if name == "predict" else ["--trainer.device=gpu"]
    refused(device, *on_gpu)
    if name == "pretrain":
        refused("optimizer.precision", "--optimizer.precision=float16")
    # The launcher asks another process, which pretends too.
    for variable, value in pretended_gpu.environment(2, "7.5").items():
        monkeypatch.setenv(variable, value)
    pretended_gpu.pretend(2, (7, 5), monkeypatch.setattr)
    if name == "predict":
        refused("NPROC", "--processes=3")
    else:
        refused("optimizer.precision", "--optimizer.precision=bfloat16")
    monkeypatch.setenv("FLAGS_selected_gpus", "2")
    refused("FLAGS_selected_gpus", *on_gpu)


@pytest.mark.parametrize("pretrains", [False, True])
def test_a_sweep_on_a_device_that_is_not_there_starts_no_run(
    built: Path, tiny_task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pretrains: bool
) -> None:
    monkeypatch.setattr(sweep, "train_all", lambda *_: pytest.fail("a run was started"))
    (tmp_path / "own.yaml").write_text("objective: {generator_weight: 0, rtd_weight: 0}")
    given = [each.replace("--", "--pretrain.", 1) for each in runs.options(built, tmp_path)]
    # Its runs have folders of the sweep.
    given = [each for each in given if not each.startswith("--pretrain.paths.output")]
    data, prefix = tiny_task / "data", "--pretrain." if pretrains else "--"
    arguments = [f"--pretrain={tmp_path / 'own.yaml'}", *given]
    arguments = arguments if pretrains else [f"{data}/task.yaml", f"{tiny_task / 'model'}", f"--data={data}"]
    done = call(sweep.main, *arguments, f"--output={tmp_path / 'sweep'}", f"{prefix}trainer.device=gpu")
    assert (done.returncode, "trainer.device: " in done.stderr) == (2, True)
    assert not (tmp_path / "sweep").exists()
