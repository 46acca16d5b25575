"""The folder of a run: only one run may use it at a time."""

from __future__ import annotations

import fcntl
import shutil
from pathlib import Path

from tests.support.runs import FINISHED, pretrain


def test_a_run_folder_in_use_by_another_process_is_refused(built: Path, finished: Path, tmp_path: Path) -> None:
    output = Path(shutil.copytree(finished, tmp_path / "run"))
    with (output / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = pretrain(built, output, *FINISHED)
    assert done.returncode == 2
    assert "is in use by another process" in done.stderr
