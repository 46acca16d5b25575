"""Locks that one process at a time holds. The system releases a lock when its process ends, even if it is killed."""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import IO

from reader.errors import InUseError, print_warning
from reader.system.atomic_files import make_folder, make_parent

LOCK_FILE = ".lock"
# What `flock` reports on shared storage that has no locks, such as Lustre without -o flock.
NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP)


def lock_file(path: Path, what: str) -> IO[bytes]:
    """Lock a file for this process until the returned file is closed; it is created if it does not exist.

    Args:
        what: the beginning of the error message, such as "output/run is in use".

    Raises InUseError that says which process holds the lock, on which machine, and since when.
    """
    while True:
        file = path.open("ab+", buffering=0)
        _lock(file, fcntl.LOCK_EX, what)
        with suppress(FileNotFoundError):
            if os.path.samestat(path.stat(), os.fstat(file.fileno())):
                break
        file.close()  # the process that held the lock has removed the file
    # On a full disk this text cannot be written, but the lock holds.
    with suppress(OSError):
        file.truncate(0)
        now = datetime.now().astimezone().isoformat(" ", "seconds")
        file.write(f"process {os.getpid()} on {socket.gethostname()} since {now}\n".encode())
    return file


def lock_folder(folder: Path, what: str) -> IO[bytes]:
    """Lock a folder as `lock_file` does, and create it if it does not exist.

    Raises InputError if a folder above it is missing, see `check_parent` in atomic_files.py.
    """
    make_folder(folder)
    return lock_file(folder / LOCK_FILE, what)


def check_unlocked(folder: Path, what: str) -> None:
    """Raise InUseError if another process has locked a folder, which may not exist. Nothing is changed."""
    if (folder / LOCK_FILE).is_file():
        with (folder / LOCK_FILE).open("rb") as file:
            _lock(file, fcntl.LOCK_SH, what)


@contextmanager
def locked_name(path: Path, what: str) -> Iterator[None]:
    """Lock a path, which need not exist, with a hidden file beside it, which is removed at the end.

    Folders that are created for this file are removed too, unless they contain something else.
    """
    created = [folder for folder in path.parents if not folder.exists()]
    make_parent(path)
    lock = path.with_name(f".{path.name}{LOCK_FILE}")
    try:
        with lock_file(lock, what):
            try:
                yield
            finally:
                lock.unlink(missing_ok=True)
    finally:
        for folder in created:
            with suppress(OSError):
                folder.rmdir()


def _lock(file: IO[bytes], kind: int, what: str) -> None:
    """Lock an open file; raises InUseError, and closes the file, if another process holds it."""
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError as error:
        with file:
            raise InUseError(f"{what} by {_holder(file)}") from error
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise
        _warn_without_locks(error.strerror)


@cache
def _warn_without_locks(reason: str) -> None:
    print_warning(f"this storage has no locks ({reason}): do not start two commands that write to the same place")


def _holder(file: IO[bytes]) -> str:
    """Return who holds the lock. The holder writes this a moment after it has the lock."""
    for _ in range(100):
        file.seek(0)
        if text := file.read().decode(errors="replace").strip():
            return text
        time.sleep(0.01)
    return "another process"
