"""Two processes with a GPU each: training equal to one process, and the end of both if one dies."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from ernie_gram.distributed.device import visible_gpus
from reader.errors import last_error_in
from tests.gpu.runs import FLOAT32, assert_equal_runs, options, start_of, steps_of, trained
from tests.support.commands import in_ranks, ranks_with, started, wait_for

pytestmark = pytest.mark.gpu

# A job with a dead process must have ended after this many seconds: see the constants of distributed/watch.py.
MAX_ENDING_SECONDS = 30.0
# An environment variable that marks the processes of a job.
JOB = "GPU_CHECK_JOB"
ENDLESS = ("--trainer.max_steps=1000000", "--trainer.save_every=1000000", "--optimizer.decay_steps=null")


def start_job(folder: Path, name: str, *arguments: str) -> AbstractContextManager[subprocess.Popen[str]]:
    """Start a pre-training in two processes; skip the test if there are fewer GPUs."""
    if (gpus := visible_gpus()) < 2:
        pytest.skip(f"needs 2 GPUs, and Paddle sees {gpus}")
    on_gpus = ("--trainer.device=gpu",)
    command = [*in_ranks(folder / f"{name}_log"), *options(folder, name, *arguments, *on_gpus)]
    return started(*command, stderr=subprocess.STDOUT, **{JOB: str(folder / name)})


def test_ten_steps_on_two_gpus_are_those_on_one(folder: Path) -> None:
    with start_job(folder, "two_gpus", start_of(folder)) as job:
        output, _ = job.communicate()
    assert job.returncode == 0, output
    assert_equal_runs(folder / "two_gpus", trained(folder, "gpu", "gpu"), FLOAT32)


def test_a_job_ends_with_the_reason_if_a_rank_is_killed(folder: Path) -> None:
    with start_job(folder, "killed", *ENDLESS) as job:
        assert wait_for(lambda: job.poll() is not None or len(steps_of(folder / "killed")) >= 2)
        assert job.poll() is None, job.communicate()[0]
        os.kill(ranks_with(**{JOB: str(folder / "killed")})[1], signal.SIGKILL)
        output, _ = job.communicate(timeout=MAX_ENDING_SECONDS)
    assert job.returncode != 0
    said = last_error_in(output)
    assert "rank 1 " in said, said
    assert "SIGKILL" in said
