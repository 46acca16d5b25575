"""A folder beside the result of a long job, which keeps what is finished until the whole is."""

from __future__ import annotations

import fcntl
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from reader.errors import InputError, SystemRefusedError
from reader.system.atomic_files import atomic_file

PLAN, LOCK = "plan.json", ".lock"


def lock_folder(folder: Path) -> IO[str] | None:
    """Make a folder this process's own for as long as the returned file stays open; None if another has it."""
    folder.mkdir(parents=True, exist_ok=True)
    lock = (folder / LOCK).open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        return None
    return lock


@contextmanager
def work_folder(output: Path, plan: dict[str, Any]) -> Iterator[Path]:
    """A folder for the job that makes `output`; removed when the job is done, or its input is found to be bad.

    What an earlier attempt left that was stopped is there again if its plan was the same, and gone if it was not.
    Whatever is put there must be whole or absent (see atomic.py). Raises InputError if another process is at the same
    job, SystemRefusedError if the disk refuses.
    """
    folder = output.with_name(f".{output.name}.work")
    try:
        lock = lock_folder(folder)
        if lock is None:
            raise InputError(f"{output}: another process is making it")
        with lock:
            wanted = json.dumps(plan, sort_keys=True, indent=1) + "\n"
            path = folder / PLAN
            if not path.is_file() or path.read_text() != wanted:
                _empty(folder)
                with atomic_file(path) as partial:
                    partial.write_text(wanted)
            try:
                yield folder
            except SystemRefusedError:
                raise
            except InputError:
                _remove(folder)
                raise
            _remove(folder)
    except OSError as error:
        raise SystemRefusedError(f"{error.filename or folder}: {error.strerror or error}") from error


def _empty(folder: Path) -> None:
    """Remove all but the lock."""
    # The plan first: a kill while the rest is removed leaves nothing that could be taken for whole.
    (folder / PLAN).unlink(missing_ok=True)
    for entry in folder.iterdir():
        if entry.is_dir():
            shutil.rmtree(entry)
        elif entry.name != LOCK:
            entry.unlink()


def _remove(folder: Path) -> None:
    _empty(folder)
    shutil.rmtree(folder)
