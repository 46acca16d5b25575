"""Locks that one process at a time holds. The system releases a lock when its process ends, even if it is killed."""

from __future__ import annotations

import errno
import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import IO

from reader.errors import InUseError, print_warning

LOCK_FILE = ".lock"
# What `flock` reports on shared storage that has no locks, such as Lustre without -o flock.
NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP)


def lock_file(path: Path, what: str) -> IO[bytes]:
    """Lock a file for this process until the returned file is closed; it is created if it does not exist.

    Args:
        what: the beginning of the error message, such as "output/run is in use".

    Raises InUseError that says which process holds the lock, and on which machine.
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
        file.write(f"process {os.getpid()} on {socket.gethostname()}\n".encode())
    return file


def check_unlocked(folder: Path, what: str) -> None:
    """Raise InUseError if another process has locked a folder, which may not exist. Nothing is changed."""
    if (folder / LOCK_FILE).is_file():
        with (folder / LOCK_FILE).open("rb") as file:
            _lock(file, fcntl.LOCK_SH, what)


@contextmanager
def locked_name(path: Path, what: str) -> Iterator[None]:
    """Lock a path, which need not exist, with a hidden file beside it, which is removed at the end."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = path.with_name(f".{path.name}{LOCK_FILE}")
    with lock_file(lock, what):
        try:
            yield
        finally:
            lock.unlink(missing_ok=True)


def _lock(file: IO[bytes], kind: int, what: str) -> None:
    """Lock an open file; raises InUseError, and closes the file, if another process holds it."""
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError as error:
        with file:
            file.seek(0)
            holder = file.read().decode(errors="replace").strip()
            raise InUseError(f"{what} by {holder or 'another process'}") from error
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise
        _warn_once(
            f"this storage has no locks ({error.strerror}): do not start two commands that write to the same place"
        )


_warn_once = cache(print_warning)
