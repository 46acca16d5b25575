"""The launcher: the status of the job, also after an error of its own, its folder of logs, and its console."""

from __future__ import annotations

from pathlib import Path

import pytest

from reader.system.lock_files import LOCK_FILE, lock_folder
from tests.support.commands import python, two_ranks

# Paddle's launcher with the thread of its store, which does not end by itself.
CODE = """
import threading, time
from ernie_gram.distributed import watched_launch

def launch():
    threading.Thread(target=time.sleep, args=(600,)).start()
    raise {}

watched_launch.launch = launch
watched_launch.launch_watched()
"""


@pytest.mark.parametrize(
    ("end", "status", "error"),
    [
        ("SystemExit(143)", 143, ""),
        ("SystemExit", 0, ""),
        ("BrokenPipeError('console')", 1, "BrokenPipeError: console"),
    ],
)
def test_a_job_ends_although_its_store_still_runs(end: str, status: int, error: str) -> None:
    done = python("-c", CODE.format(end), timeout=120)
    assert done.returncode == status, done.stderr
    assert error in done.stderr


def test_a_second_job_with_the_same_folder_of_logs_is_refused(tmp_path: Path) -> None:
    """It would replace the heartbeats of the first one, whose launcher would then take its own ranks for hanging."""
    log = tmp_path / "log"
    with lock_folder(log, "the first job"):
        done = python(*two_ranks(log), timeout=120)
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: LOG_DIR: {log} is in use by process ")
    assert done.stderr.endswith("; set LOG_DIR to another folder\n")
    assert [path.name for path in log.iterdir()] == [LOCK_FILE]
