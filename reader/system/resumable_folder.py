"""A folder next to the output of a long job that keeps finished parts, so that a stopped job can be resumed."""

from __future__ import annotations

import fcntl
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from reader.errors import InputError, SystemRefusedError
from reader.system.atomic_files import atomic_file, make_folder

PLAN_FILE, LOCK_FILE = "plan.json", ".lock"


def lock_folder(folder: Path) -> IO[str] | None:
    """Lock a folder for this process, and return the lock file. The lock is held while that file is open.

    Return None if another process holds the lock. The folder is created if it does not exist; raises InputError if a
    folder above it is missing, see `check_parent` in atomic_files.py.
    """
    make_folder(folder)
    lock = (folder / LOCK_FILE).open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        return None
    return lock


@contextmanager
def resumable_folder(output: Path, plan: dict[str, Any]) -> Iterator[Path]:
    """Yield a folder for the finished parts of the job that creates `output`.

    The folder is removed when the job is finished, or when its input is invalid. If an earlier job was stopped, its
    folder is reused if its plan is equal to `plan`; otherwise its content is removed. Everything in the folder must be
    written atomically (see atomic_files.py). Raises InputError if another process runs the same job,
    SystemRefusedError if the folder cannot be written.
    """
    folder = output.with_name(f".{output.name}.work")
    try:
        lock = lock_folder(folder)
        if lock is None:
            raise InputError(f"{output}: another process is creating it")
        with lock:
            plan_text = json.dumps(plan, sort_keys=True, indent=1) + "\n"
            path = folder / PLAN_FILE
            if not path.is_file() or path.read_text() != plan_text:
                _remove_content(folder)
                with atomic_file(path) as partial:
                    partial.write_text(plan_text)
            try:
                yield folder
            except SystemRefusedError:
                raise
            except InputError:
                _remove_all(folder)
                raise
            _remove_all(folder)
    except OSError as error:
        raise SystemRefusedError(f"{error.filename or folder}: {error.strerror or error}") from error


def _remove_content(folder: Path) -> None:
    """Remove everything in the folder except the lock."""
    # The plan is removed first. If the process is killed during the removal, no later job reuses the partial content.
    (folder / PLAN_FILE).unlink(missing_ok=True)
    for entry in folder.iterdir():
        if entry.is_dir():
            shutil.rmtree(entry)
        elif entry.name != LOCK_FILE:
            entry.unlink()


def _remove_all(folder: Path) -> None:
    _remove_content(folder)
    shutil.rmtree(folder)
