"""The launcher: its folder of logs, its console, and the threads of the ranks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ernie_gram.distributed.launcher import LAUNCHER_LOCK
from reader.system.lock_files import LOCK_FILE, lock_file
from reader.system.processes import available_cores
from tests.support.commands import ROOT, python, two_ranks, wait_for


def test_a_second_job_with_the_same_folder_of_logs_is_refused(tmp_path: Path) -> None:
    """It would replace the heartbeats of the first one, whose launcher would then take its own ranks for hanging."""
    log = tmp_path / "log"
    log.mkdir()
    with lock_file(log / LAUNCHER_LOCK, "the first job"):
        done = python(*two_ranks(log), timeout=120)
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: LOG_DIR: {log} is in use by process ")
    assert done.stderr.endswith("; set LOG_DIR to another folder\n")
    assert [path.name for path in log.iterdir()] == [LAUNCHER_LOCK]
    # The folder of logs may be that of the run, which has a lock of its own.
    assert LAUNCHER_LOCK != LOCK_FILE


RANK = """
import os, pathlib, signal, sys, time

def mark(name):
    pathlib.Path(__file__).with_name(name + "." + os.environ["PADDLE_TRAINER_ID"]).touch()

def save(*_):
    print("saves", flush=True)
    time.sleep(1.5)
    mark("saved")
    sys.exit(130)

signal.signal(signal.SIGINT, save)
mark("trains")
print("trains", flush=True)
time.sleep(60)
"""
THREADS_OF_RANK = """
from ernie_gram.distributed.world import RANK
import os, pathlib
pathlib.Path(__file__).with_name(f"threads.{RANK}").write_text(os.environ["OMP_NUM_THREADS"])
"""


@pytest.mark.parametrize("given", ["", "3"])
def test_ranks_share_the_cores_unless_the_number_of_threads_is_given(tmp_path: Path, given: str) -> None:
    script = tmp_path / "rank.py"
    script.write_text(THREADS_OF_RANK)
    done = python(*two_ranks(tmp_path / "log", str(script)), OMP_NUM_THREADS=given, timeout=120)
    assert done.returncode == 0, done.stderr
    found = [path.read_text() for path in tmp_path.glob("threads.*")]
    assert found == [given or str(max(1, available_cores() // 2))] * 2


def test_secrets_of_the_environment_are_in_no_log_that_others_can_read(tmp_path: Path) -> None:
    """Paddle writes the whole environment of each rank into files; one of them was there with another mode before."""
    log, secret = tmp_path / "log", "a secret of the test"
    log.mkdir()
    for path in (script := tmp_path / "rank.py", log / "backup_env.1.json"):
        path.write_text("pass")
    done = python(*two_ranks(log, str(script)), API_TOKEN=secret, timeout=120)
    assert done.returncode == 0, done.stderr
    kept = [path for path in log.iterdir() if secret in path.read_text()]
    assert [path.name for path in kept if path.stat().st_mode & 0o077] == []


def test_ranks_save_although_nobody_reads_the_console(tmp_path: Path) -> None:
    """As after `2>&1 | tee` and Ctrl-C."""
    script = tmp_path / "rank.py"
    script.write_text(RANK)
    command = [sys.executable, *two_ranks(tmp_path / "log", str(script))]
    # Python without a buffer would see the error elsewhere, where Paddle ignores it.
    buffered = {**os.environ, "PYTHONUNBUFFERED": ""}
    with subprocess.Popen(
        command, cwd=ROOT, env=buffered, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "trains\n"
            # The console shows the lines of one rank.
            assert wait_for(lambda: len(list(tmp_path.glob("trains.*"))) == 2)
            process.stdout.close()
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 130
        finally:
            process.kill()
    assert {path.name for path in tmp_path.glob("saved.*")} == {"saved.0", "saved.1"}
