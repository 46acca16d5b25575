"""The launcher ends with the status of the job, also after an error of its own."""

from __future__ import annotations

import pytest

from tests.support.commands import python

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
