"""Progress of long commands, on standard error, by tqdm: a bar on a terminal, or a line now and then in a log.

Only commands show progress (see `show_progress`); TQDM_DISABLE=1 in the environment hides it.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, NoReturn

from reader.errors import write_or_drop

if TYPE_CHECKING:
    from tqdm import tqdm

# Without a terminal: time until the first line of a job, and between two lines.
LINE_SECONDS = 30.0
# Whether this process shows progress: a program that imports this package has output of its own.
_is_shown = False


class _Lines:
    """A log, as a file for tqdm: what tqdm would draw over the line before becomes a line of its own."""

    def write(self, text: str) -> None:
        if text.strip():
            write_or_drop(sys.stderr, f"{text.strip()}\n")

    def flush(self) -> None:
        """Each line is flushed when it is written."""


def progress(what: str, total: float | None = None, unit: str = "", first: float = 0) -> tqdm[NoReturn]:
    """Return a bar, for a `with` statement whose body calls `update` with the number of units done since the last call.

    Args:
        what: what the command is doing.
        total: number of units of the whole work; None if it is unknown.
        unit: such as " rows", or "B" for bytes.
        first: number of units that an earlier process had done.
    """
    from tqdm import tqdm

    settings: dict[str, Any] = {"leave": False, "miniters": 1}
    if not _is_shown or sys.stderr is None:
        settings["disable"] = True
    elif sys.stderr.isatty():
        settings["dynamic_ncols"] = True
    else:
        settings |= {"file": _Lines(), "ncols": 0, "mininterval": LINE_SECONDS, "delay": LINE_SECONDS}
    tqdm.monitor_interval = 0  # no thread: processes may be forked at any time
    return tqdm(desc=what, total=total, unit=unit, unit_scale=unit == "B", initial=first, **settings)


def show_progress(shown: bool = True) -> None:
    """Show progress in this process from now on, or hide it. Commands show it; of a job's processes, the first does."""
    global _is_shown
    _is_shown = shown


def is_shown() -> bool:
    """Return whether this process tells the user what it does."""
    return _is_shown and os.environ.get("TQDM_DISABLE", "") in ("", "0")
