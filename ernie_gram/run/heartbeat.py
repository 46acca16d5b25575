"""A small file that tells the launcher of a process what it does, and when it last made progress.

The main thread writes it where progress is made; a thread of its own would go on while the main thread hangs. The
launcher reads it (see distributed/watch.py). Without a launcher nothing is written.
"""

from __future__ import annotations

import faulthandler
import json
import os
import platform
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

# The environment variable in which the launcher names the folder of the files.
FOLDER = "ERNIE_GRAM_HEARTBEATS"
_BYTES = 256
# Makes a process that hangs print the stacks of its threads.
STACK_SIGNAL = signal.SIGUSR1


class Beat(NamedTuple):
    """The content of a heartbeat file.

    Attributes:
        seconds: time of the system's monotonic clock, which all processes of a machine share.
        limit: the process hangs if it makes no progress for this many seconds; 0 for no limit.
        activity: what it does, for messages.
    """

    seconds: float
    limit: int
    activity: str


# The open file (-1 without one), and what was written last.
_file, _last = -1, Beat(0.0, 0, "starting")


def heartbeat_file(folder: Path, rank: int) -> Path:
    """Return the file of a rank. It has the machine's name, because some storage has no locks that keep jobs apart."""
    return folder / f"heartbeat.{rank}.{platform.node()}"


def beat(activity: str | None = None) -> None:
    """Record that progress was made, and what the process does from now on (None: the same as before)."""
    global _last
    if _file < 0:
        return
    _last = Beat(time.monotonic(), _last.limit, (activity or _last.activity)[:100])
    # If the disk is full, training goes on.
    with suppress(OSError):
        os.pwrite(_file, json.dumps(_last).encode().ljust(_BYTES), 0)


@contextmanager
def heartbeat(rank: int, limit: int) -> Iterator[None]:
    """Within the context, `beat` writes to the file of this rank, if the launcher has named a folder.

    Args:
        limit: see Beat.
    """
    global _file, _last
    if FOLDER not in os.environ:
        yield
        return
    with suppress(OSError):
        _file = os.open(heartbeat_file(Path(os.environ[FOLDER]), rank), os.O_WRONLY | os.O_CREAT, 0o644)
        faulthandler.register(STACK_SIGNAL)
    _last = _last._replace(limit=limit)
    beat("starting")
    try:
        yield
    finally:
        _last = _last._replace(limit=0)
        beat("ending")
        if _file >= 0:
            os.close(_file)
        _file = -1


def read_beat(path: Path) -> Beat | None:
    """Return the content of a heartbeat file, or None if there is none yet."""
    try:
        return Beat(*json.loads(path.read_text()))
    except (OSError, ValueError, TypeError):
        return None
