"""Locks say who holds them, end with their process, and leave nothing behind."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import socket
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest

from reader.errors import InUseError
from reader.system.lock_files import LOCK_FILE, _warn_once, check_unlocked, lock_file, locked_name
from tests.support.commands import ROOT

HOLD = "import sys; from pathlib import Path; from reader.system.lock_files import LOCK_FILE, lock_file\n"
HOLD += "lock = lock_file(Path(sys.argv[1]) / LOCK_FILE, ''); print('locked', flush=True); sys.stdin.read()"


def test_the_error_names_the_process_that_holds_the_lock_and_a_kill_releases_it(tmp_path: Path) -> None:
    folder = tmp_path
    command = [sys.executable, "-c", HOLD, str(folder)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "locked\n"
        wanted = rf"^run is in use by process {holder.pid} on {re.escape(socket.gethostname())}$"
        with pytest.raises(InUseError, match=wanted):
            lock_file(folder / LOCK_FILE, "run is in use")
        with pytest.raises(InUseError, match=wanted):
            check_unlocked(folder, "run is in use")
        holder.kill()
    check_unlocked(folder, "")
    with lock_file(folder / LOCK_FILE, ""), pytest.raises(InUseError, match=f"process {os.getpid()} on"):
        check_unlocked(folder, "")


def test_storage_without_locks_is_one_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def flock(*_: object) -> None:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", flock)
    _warn_once.cache_clear()
    with lock_file(tmp_path / LOCK_FILE, ""), locked_name(tmp_path / "file", ""):
        check_unlocked(tmp_path, "")
    warnings = capsys.readouterr().err
    assert warnings.startswith("warning: this storage has no locks (Function not implemented): ")
    assert warnings.count("\n") == 1
    monkeypatch.setattr(fcntl, "flock", Mock(side_effect=OSError(errno.EIO, "Input/output error")))
    with pytest.raises(OSError, match="Input/output error"):
        check_unlocked(tmp_path, "")


def test_a_check_changes_nothing_and_does_not_disturb_another_check(tmp_path: Path) -> None:
    check_unlocked(tmp_path / "missing", "")
    assert list(tmp_path.iterdir()) == []
    lock_file(tmp_path / LOCK_FILE, "").close()
    before = (tmp_path / ".lock").read_bytes()
    with (tmp_path / ".lock").open("rb") as other:
        fcntl.flock(other, fcntl.LOCK_SH)
        check_unlocked(tmp_path, "")
    assert (tmp_path / ".lock").read_bytes() == before


def test_a_lock_whose_file_was_removed_is_taken_on_a_new_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process before removes the file between our `open` and our lock. A third process makes a new file."""
    path, opened = tmp_path / "lock", []

    def lock_once_removed(*arguments: object) -> None:
        opened.append(arguments)
        if len(opened) == 1:
            path.unlink()

    monkeypatch.setattr("reader.system.lock_files._lock", lock_once_removed)
    lock_file(path, "").close()
    assert len(opened) == 2
    assert path.read_text().startswith(f"process {os.getpid()} on ")
