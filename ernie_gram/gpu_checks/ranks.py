"""Checks of two processes with a GPU each: equal training, equal exchange of rows, and the end of both if one dies."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time

from ernie_gram.distributed.device import visible_gpus
from ernie_gram.gpu_checks.check import Failed, Setup, Skipped, require
from ernie_gram.gpu_checks.equal_numbers import FLOAT32, compare, on_gpu
from ernie_gram.gpu_checks.processes import MARK, processes_with
from ernie_gram.gpu_checks.runs import STEPS, options, started, steps_of
from reader.errors import last_error_in
from reader.system.installation import PACKAGES, child_environment

PROCESSES = 2
# A job with a dead process must have ended after this many seconds: see the constants of distributed/watch.py.
MAX_ENDING_SECONDS = 30.0
POLL_SECONDS = 0.05


def two_gpus(setup: Setup) -> str:
    """Compare ten steps of two GPUs with those of one."""
    name = "two_gpus"
    arguments = options(setup, name, STEPS, started(setup), *_on_gpus(setup))
    output_of(start_job(setup, name, "ernie_gram/pretrain.py", *arguments))
    shown = compare(setup, setup.folder / name, on_gpu(setup), FLOAT32)
    return f"{STEPS} steps on two GPUs and on one differ by {shown}"


def row_exchange(setup: Setup) -> str:
    """Let two processes sum gradients by row and as a whole (see exchange_rank.py)."""
    output = output_of(start_job(setup, "row_exchange", "ernie_gram/gpu_checks/exchange_rank.py"))
    differences = re.findall(r"^difference (\S+)$", output, re.MULTILINE)
    require(len(differences) == 1, f"the processes printed {len(differences)} results")
    require(float(differences[0]) == 0, f"rows and whole gradients differ by {differences[0]}")
    return "sums by row have the bits of sums of whole gradients"


def killed_rank(setup: Setup) -> str:
    """Kill one of two processes during a training: the launcher ends the other one, and says why."""
    name = "killed_rank"
    arguments = options(setup, name, 1_000_000, "--optimizer.decay_steps=null", *_on_gpus(setup))
    job = start_job(setup, name, "ernie_gram/pretrain.py", *arguments)
    while job.poll() is None and len(steps_of(setup.folder / name)) < 2:
        time.sleep(POLL_SECONDS)
    if job.poll() is not None:
        output_of(job)
    ranks = processes_with("PADDLE_TRAINER_ID=1", f"{MARK}={os.environ[MARK]}")
    require(bool(ranks), "the launcher has no process of rank 1")
    os.kill(min(ranks), signal.SIGKILL)
    killed = time.monotonic()
    try:
        output, _ = job.communicate(timeout=MAX_ENDING_SECONDS)
    except subprocess.TimeoutExpired:
        raise Failed(f"the job has not ended {MAX_ENDING_SECONDS:g} s after rank 1 was killed") from None
    seconds = time.monotonic() - killed
    setup.numbers.update(seconds=seconds, status=job.returncode)
    said = last_error_in(output).removeprefix("error: ")
    require(job.returncode != 0, f"the job ended with status 0 after {seconds:.1f} s")
    is_named = "rank 1 " in said and "SIGKILL" in said
    require(is_named, f"the job ended after {seconds:.1f} s without the reason: {said}")
    return f"the job ended after {seconds:.1f} s: {said}"


def _on_gpus(setup: Setup) -> tuple[str, ...]:
    """Return options for a GPU, and for a job that the launcher ends long before the limit if a process hangs."""
    return "--trainer.device=gpu", f"--trainer.hang_seconds={setup.limit // 4}"


def start_job(setup: Setup, name: str, script: str, *arguments: str) -> subprocess.Popen[str]:
    """Start a script in two processes; raises Skipped if there are fewer GPUs.

    A job that still runs at the end of the check is ended with the check's process (see processes.py).
    """
    if (gpus := visible_gpus()) < PROCESSES:
        raise Skipped(f"needs {PROCESSES} GPUs, and Paddle sees {gpus}")
    launcher = [sys.executable, "-m", "ernie_gram.distributed.launch", "--log_level", "ERROR"]
    launcher += ["--nproc_per_node", str(PROCESSES), "--log_dir", str(setup.folder / f"{name}_log")]
    return subprocess.Popen(
        [*launcher, str(PACKAGES / script), *arguments],
        env=child_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def output_of(job: subprocess.Popen[str]) -> str:
    """Wait for a job and return what it prints; raises Failed with its error if it fails."""
    output, _ = job.communicate()
    said = last_error_in(output).removeprefix("error: ") or "no output"
    require(job.returncode == 0, f"{said} (status {job.returncode})")
    return output
