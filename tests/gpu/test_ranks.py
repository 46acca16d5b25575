"""Two processes with a GPU each: training equal to one process, and the end of both if one dies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from ernie_gram.distributed.device import visible_gpus
from reader.errors import last_error_in
from tests.gpu.runs import FLOAT32, assert_equal_runs, options, started, steps_of, trained
from tests.support.commands import ROOT, processes_with, two_ranks, wait_for

pytestmark = pytest.mark.gpu

# A job with a dead process must have ended after this many seconds: see the constants of distributed/watch.py.
MAX_ENDING_SECONDS = 30.0
# An environment variable that marks the processes of a job.
JOB = "GPU_CHECK_JOB"
ENDLESS = ("--trainer.max_steps=1000000", "--trainer.save_every=1000000", "--optimizer.decay_steps=null")


def start_job(folder: Path, name: str, *arguments: str) -> subprocess.Popen[str]:
    """Start a pre-training in two processes; skip the test if there are fewer GPUs."""
    if (gpus := visible_gpus()) < 2:
        pytest.skip(f"needs 2 GPUs, and Paddle sees {gpus}")
    on_gpus = ("--trainer.device=gpu", "--trainer.hang_seconds=60")
    command = [sys.executable, *two_ranks(folder / f"{name}_log"), *options(folder, name, *arguments, *on_gpus)]
    pipe, environment = subprocess.PIPE, {**os.environ, JOB: str(folder / name)}
    return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=pipe, stderr=subprocess.STDOUT, text=True)


def test_ten_steps_on_two_gpus_are_those_on_one(folder: Path) -> None:
    job = start_job(folder, "two_gpus", started(folder))
    output, _ = job.communicate()
    assert job.returncode == 0, output
    assert_equal_runs(folder / "two_gpus", trained(folder, "gpu", "gpu"), FLOAT32)


def test_a_job_ends_with_the_reason_if_a_rank_is_killed(folder: Path) -> None:
    job, mark = start_job(folder, "killed", *ENDLESS), f"{JOB}={folder / 'killed'}"
    try:
        assert wait_for(lambda: job.poll() is not None or len(steps_of(folder / "killed")) >= 2)
        assert job.poll() is None, job.communicate()[0]
        os.kill(min(processes_with(mark, "PADDLE_TRAINER_ID=1")), signal.SIGKILL)
        output, _ = job.communicate(timeout=MAX_ENDING_SECONDS)
    finally:
        for process in processes_with(mark):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
    assert job.returncode != 0
    said = last_error_in(output)
    assert "rank 1 " in said, said
    assert "SIGKILL" in said
