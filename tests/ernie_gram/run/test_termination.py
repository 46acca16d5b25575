"""SIGTERM ends a process with status 143, whether its main thread runs Python code or is blocked in C code."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ernie_gram.run.run_log import read_log
from tests.support.commands import ROOT
from tests.support.runs import options

LINE = "terminated by SIGTERM; run the same command again to resume\n"
WAITING = """
import hashlib, time
from ernie_gram.run.termination import exit_at_sigterm
with exit_at_sigterm(grace_seconds=0.5):
    print("ready", flush=True)
    {}
"""


def terminate(process: subprocess.Popen[str]) -> str:
    """Send SIGTERM; return what the process writes to standard error. It is killed if it does not end."""
    process.terminate()
    try:
        return process.communicate(timeout=20)[1]
    finally:
        process.kill()


@pytest.mark.parametrize(
    ("code", "line"),
    [("time.sleep(60)", LINE), ("hashlib.pbkdf2_hmac('sha256', b'x', b'y', 10**9)", "")],
    ids=["Python code", "C code that no signal interrupts"],
)
def test_a_waiting_process_ends(code: str, line: str) -> None:
    command = [sys.executable, "-c", WAITING.format(code)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.5)  # until the process is inside the call
        stderr = terminate(process)
    assert process.returncode == 143
    assert stderr == line


def test_the_former_handlers_return_after_the_context() -> None:
    from ernie_gram.run.termination import exit_at_sigterm

    before = signal.getsignal(signal.SIGTERM)
    with exit_at_sigterm():
        assert signal.getsignal(signal.SIGTERM) is not before
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_training_process_ends_and_releases_its_folder(built: Path, tmp_path: Path) -> None:
    """Paddle's own handler could block for ever here, with the folder locked (2 of 9 runs)."""
    command = [sys.executable, "-m", "ernie_gram.pretrain"]
    command += options(built, tmp_path / "run", "--trainer.max_steps=100000", "--optimizer.decay_steps=100000")
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 60
        while len(read_log(tmp_path / "run")) < 5 and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        stderr = terminate(process)
    assert process.returncode == 143
    assert stderr.splitlines()[-1] + "\n" == LINE
