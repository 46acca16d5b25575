"""Pass the data that a launcher has prepared to the processes that it starts, so that they are prepared once.

They are a pickle in an unnamed file, which the launcher holds open, so that nothing is left when the job has ended, and
nobody else can put a file there.
"""

from __future__ import annotations

import os
import pickle
import tempfile
from contextlib import suppress
from typing import Any

# The path of the file, for the processes that this one starts.
PATH = "ERNIE_GRAM_PREPARED"


def share(prepared: Any) -> None:
    """Let the processes that this one starts take a value. If the disk is full, each prepares it for itself."""
    with suppress(OSError), tempfile.TemporaryFile() as file:
        pickle.dump(prepared, file, pickle.HIGHEST_PROTOCOL)
        file.flush()
        os.environ[PATH] = f"/proc/{os.getpid()}/fd/{os.dup(file.fileno())}"


def shared() -> Any:
    """Return what the launcher of this process has shared; None if there is no such value."""
    if path := os.environ.get(PATH):
        with open(path, "rb") as file:
            return pickle.load(file)
    return None
