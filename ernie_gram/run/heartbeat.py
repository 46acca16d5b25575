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
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

# The environment variable in which the launcher names the file of a process.
FILE = "ERNIE_GRAM_HEARTBEAT"
_BYTES = 256
# Makes a process that hangs print the stacks of its threads.
STACK_SIGNAL = signal.SIGUSR1


class Beat(NamedTuple):
    """The content of a heartbeat file.

    Attributes:
        seconds: time of the system's monotonic clock, which all processes of a machine share.
        activity: what it does, for messages.
    """

    seconds: float
    activity: str


_activity = "starting"


def beat(activity: str | None = None) -> None:
    """Record that progress was made, and what the process does from now on (None: the same as before)."""
    global _activity
    _activity = (activity or _activity)[:100]
    # If the disk is full, training goes on.
    with suppress(OSError):
        if file := _open_file():
            os.pwrite(file, json.dumps(Beat(time.monotonic(), _activity)).encode().ljust(_BYTES), 0)


@cache
def _open_file() -> int:
    """Return the file descriptor of this process's file; 0 without a launcher. Afterwards, STACK_SIGNAL has effect."""
    if FILE not in os.environ:
        return 0
    faulthandler.register(STACK_SIGNAL)
    return os.open(os.environ[FILE], os.O_WRONLY | os.O_CREAT, 0o644)


def read_beat(path: Path) -> Beat | None:
    """Return the content of a heartbeat file, or None if there is none yet."""
    try:
        return Beat(*json.loads(path.read_text()))
    except (OSError, ValueError, TypeError):
        return None
