"""Lines on a console that may be gone, as after `| tee` and Ctrl-C, or full. They are lost; the work goes on."""

from __future__ import annotations

import os
import sys
import threading
from contextlib import AbstractContextManager, nullcontext
from typing import TextIO

# Reentrant: a signal handler may write while its thread does.
_dropping = threading.RLock()


def above_bars(stream: TextIO) -> AbstractContextManager[None]:
    """Let the lines that the body writes to a stream appear above the bars on the same terminal (see progress.py)."""
    tqdm = getattr(sys.modules.get("tqdm"), "tqdm", None)
    return tqdm.external_write_mode(stream) if tqdm else nullcontext()


def write_or_drop(stream: TextIO | None, text: str = "") -> None:
    """Write a text, with all that the stream holds back, or drop both if the system refuses it.

    Args:
        stream: None if the process was started without it.
    """
    if stream is None:
        return
    try:
        with above_bars(stream):
            stream.write(text)
            stream.flush()
    except OSError:
        _drop(stream)


def _drop(stream: TextIO) -> None:
    """Forget what a stream holds back. Python would write it at the end of the process, and exit with status 120."""
    with _dropping, open(os.devnull, "wb") as nowhere:
        number = stream.fileno()
        kept = os.dup(number)
        os.dup2(nowhere.fileno(), number)
        stream.flush()
        os.dup2(kept, number)
        os.close(kept)
