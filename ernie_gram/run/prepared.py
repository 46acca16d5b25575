"""Pass the data that a launcher has prepared to the processes that it starts, so that they are prepared once.

They are a pickle in an unnamed file, which the launcher holds open, so that nothing is left when the job has ended, and
nobody else can put a file there.
"""

from __future__ import annotations

import os
import pickle
import tempfile
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

# The path of the file, for this process, which writes it, and for those that it starts.
PATH = "ERNIE_GRAM_PREPARED"

Prepared = TypeVar("Prepared")


def share_prepared() -> None:
    """Let the processes that this one starts take what `prepared_once` prepares in this one."""
    with tempfile.TemporaryFile() as file:
        os.environ[PATH] = f"{_own_files()}{os.dup(file.fileno())}"


def prepared_once(prepare: Callable[[], Prepared]) -> Prepared:
    """Return what `prepare` returns: from the launcher's file if there is one, and else from a call."""
    path = os.environ.get(PATH, "")
    is_own = path.startswith(_own_files())
    # If the disk was full, each process prepares for itself.
    if path and not is_own:
        with suppress(EOFError, pickle.UnpicklingError), open(path, "rb") as file:
            found: tuple[Prepared] = pickle.load(file)
            return found[0]
    made = prepare()
    if is_own:
        with suppress(OSError), open(path, "wb") as file:
            pickle.dump((made,), file, pickle.HIGHEST_PROTOCOL)
    return made


def _own_files() -> str:
    return f"/proc/{os.getpid()}/fd/"
