"""A small file that tells the launcher of a process what it does, and when it last made progress.

The main thread writes it where progress is made; a thread of its own would go on while the main thread hangs. The
launcher reads it (see distributed/watch.py). Without a launcher nothing is written.
"""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

_BYTES = 256
# Makes a process that hangs print the stacks of its threads.
STACK_SIGNAL = signal.SIGUSR1


@dataclass(frozen=True)
class Beat:
    """The content of a heartbeat file.

    Attributes:
        seconds: time of the system's monotonic clock, which all processes of a machine share.
        limit: the process hangs if it makes no progress for this many seconds; 0 for no limit.
        activity: what it does, for messages.
    """

    seconds: float
    limit: int
    activity: str


@dataclass
class _Writer:
    """The open file (-1 without one), and what was written last."""

    file: int = -1
    limit: int = 0
    activity: str = "starting"


_writer = _Writer()


def beat(activity: str | None = None) -> None:
    """Record that progress was made, and what the process does from now on (None: the same as before)."""
    if _writer.file < 0:
        return
    _writer.activity = activity or _writer.activity
    text = json.dumps([time.monotonic(), _writer.limit, _writer.activity[:100]])
    # If the disk is full, training goes on.
    with suppress(OSError):
        os.pwrite(_writer.file, text.encode().ljust(_BYTES), 0)


@contextmanager
def heartbeat(path: str | None, limit: int) -> Iterator[None]:
    """Within the context, `beat` writes to `path`; if it is None, nothing is written.

    Args:
        limit: see Beat.
    """
    if path is None:
        yield
        return
    with suppress(OSError):
        _writer.file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
        faulthandler.register(STACK_SIGNAL)
    _writer.limit = limit
    beat("starting")
    try:
        yield
    finally:
        _writer.limit = 0
        beat("ending")
        if _writer.file >= 0:
            os.close(_writer.file)
        _writer.file = -1


def read_beat(path: Path) -> Beat | None:
    """Return the content of a heartbeat file, or None if there is none yet."""
    try:
        seconds, limit, activity = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return Beat(seconds, limit, activity)
