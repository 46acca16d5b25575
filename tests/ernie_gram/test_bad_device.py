"""Devices on which a run of pre-training cannot compute: one line says so, and nothing is created."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ernie_gram import preflight, pretrain, run_ablation
from tests.support import pretended_gpu
from tests.support.commands import assert_one_line_error, call
from tests.support.runs import options

NO_GPU = "trainer.device: gpu asked for, but this Paddle is the package for CPUs (paddlepaddle); install paddlepaddle-"
NO_BFLOAT16 = "optimizer.precision: bfloat16 needs a GPU of compute capability 8.0 or higher (A100 or later), and Pre"

# A run that is not refused should end soon.
SHORT = ["--trainer.max_steps=3", "--optimizer.warmup_steps=1", "--optimizer.decay_steps=3"]


def ablation(built: Path, folder: Path) -> list[str]:
    corpora = [f"--paths.corpus={built / 'corpus'}", f"--paths.held_out={built / 'held_out'}"]
    return ["--output", str(folder / "ablation"), "--rungs", "explicit", *corpora]


@pytest.mark.parametrize(
    ("main", "arguments"),
    [
        (pretrain.main, lambda built, folder: options(built, folder / "run")),
        (pretrain.main, lambda built, folder: options(built, folder / "run", "--check")),
        (preflight.main, lambda built, folder: options(built, folder / "run", "--bandwidth=1GB")),
        (run_ablation.main, ablation),
    ],
    ids=["pretrain", "check", "preflight", "run_ablation"],
)
def test_a_device_that_lacks_what_a_run_needs_is_refused(
    built: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    main: Callable[[], None],
    arguments: Callable[[Path, Path], list[str]],
) -> None:
    def refused(message: str, *more: Any) -> None:
        done = call(main, *arguments(built, tmp_path), *SHORT, *map(str, more))
        assert_one_line_error(done, message)
        assert not list(tmp_path.iterdir())

    refused(NO_GPU, "--trainer.device=gpu")
    refused("optimizer.precision: float16 needs a GPU", "--optimizer.precision=float16")
    # The ablation asks another process, which pretends too.
    for name, value in pretended_gpu.environment(2, "7.5").items():
        monkeypatch.setenv(name, value)
    pretended_gpu.pretend(2, (7, 5), monkeypatch.setattr)
    refused(NO_BFLOAT16, "--optimizer.precision=bfloat16")
    if main == run_ablation.main:
        refused("NPROC: 3 processes on this machine, but Paddle sees 2 GPUs", "--processes", 3)
    else:
        monkeypatch.setenv("FLAGS_selected_gpus", "2")
        refused("FLAGS_selected_gpus: GPU 2 asked for, but Paddle sees 2 GPUs", "--trainer.device=gpu")
