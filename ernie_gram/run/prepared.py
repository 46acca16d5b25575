"""Pass the data that a launcher's check has prepared to the processes that it starts, so that they are prepared once.

They are a pickle in an unnamed file, which the launcher holds open, so that nothing is left when the job has ended, and
nobody else can put a file there.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

# The path of the file, for the check and for the processes.
WRITE, READ = "ERNIE_GRAM_WRITE_PREPARED", "ERNIE_GRAM_PREPARED"

Prepared = TypeVar("Prepared")


def prepared_once(prepare: Callable[[], Prepared]) -> Prepared:
    """Return what `prepare` returns: from the launcher's file if there is one, and else from a call."""
    if found := _read():
        return found[0]
    made = prepare()
    if WRITE in os.environ:
        # If the disk is full, each process prepares for itself.
        with suppress(OSError), open(os.environ[WRITE], "wb") as file:
            pickle.dump((made,), file, pickle.HIGHEST_PROTOCOL)
    return made


def _read() -> Any:
    """Return the content of the file; None if the environment names no file, or if it was not written completely."""
    if READ not in os.environ:
        return None
    with suppress(EOFError, pickle.UnpicklingError), open(os.environ[READ], "rb") as file:
        return pickle.load(file)
    return None
