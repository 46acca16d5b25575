"""Tell the user when a command has to compile functions, which takes seconds without any other output."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from reader.system.compiled import event

MESSAGE = (
    "compiling functions; this takes several seconds, and only in the first run of a command after an installation"
)


class _Announcer(event.Listener):
    """Prints the message at the first compilation in the process that made this object, not in its workers."""

    def __init__(self) -> None:
        self._pid: int | None = os.getpid()

    def on_start(self, event: event.Event) -> None:
        if self._pid == os.getpid():
            self._pid = None
            print(MESSAGE, file=sys.stderr)

    def on_end(self, event: event.Event) -> None:
        pass


@contextmanager
def announced_compilation() -> Iterator[None]:
    """Within the context, print one line on standard error when numba starts to compile the first function.

    Nothing is printed for functions that numba loads from its cache.
    """
    with event.install_listener("numba:compile", _Announcer()):
        yield
