"""Progress of long commands, on standard error: a bar at the bottom of a terminal, or an occasional line in a log.

The state here belongs to the process, as its streams do. Only commands show progress (see `show_progress`);
TQDM_DISABLE=1 in the environment hides it.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, TextIO, cast

from reader.system.console import write_or_drop

# Time between two drawings of the bar.
REDRAW_SECONDS = 0.5
# Without a terminal: time from the start of the process to the first line; minimum time between two lines, absolute and
# as a share of the time since the start, so that lines become rarer.
FIRST_SECONDS, LINE_SECONDS, LINE_SHARE = 5.0, 30.0, 0.1
ERASE = "\r\x1b[K"


@dataclass(eq=False)
class Phase:
    """What a command is doing.

    Attributes:
        what: a description.
        total: number of units of the whole work; None if it is unknown.
        unit: such as " rows", or "B" for bytes; "" if units are not counted.
        done: number of units that are done, including those of an earlier process.
        began: start, in seconds of the monotonic clock.
        counted: where the rate begins, once units are done: the time and the units at the first `advance`, because what
            is slow only once, such as compiling, comes before that.
    """

    what: str
    total: float | None = None
    unit: str = ""
    done: float = 0
    began: float = field(default_factory=time.monotonic)
    counted: tuple[float, float] | None = None

    def advance(self, units: float) -> None:
        """Note that more units are done."""
        self.done += units
        self.counted = self.counted or (time.monotonic(), self.done)

    def text(self, columns: int = 0, plain: bool = True) -> str:
        """Return the phase as one line for a terminal with `columns` columns, or without a bar if that is 0.

        `plain` draws the bar in ASCII.
        """
        from tqdm import tqdm
        from tqdm.utils import disp_trim

        now = time.monotonic()
        elapsed = now - self.began
        if not self.unit:
            text = f"{self.what} [{tqdm.format_interval(elapsed)}]"
        else:
            since, units = self.counted or (self.began, self.done)
            rate = (self.done - units) / max(now - since, 1e-9)  # 0: tqdm shows "?"
            total, scales = self.total or 0, self.unit == "B"
            text = tqdm.format_meter(self.done, total, elapsed, columns, self.what, plain, self.unit, scales, rate)
        return disp_trim(text, columns) if columns else text


class _Above:
    """A stream to the terminal whose text appears above the bar."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with _display.lock:
            _display.erase()
            _display.is_at_line_start = text.endswith("\n") if text else _display.is_at_line_start
            return self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _Display:
    """Shows the innermost of the phases that a process is in."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.phases: list[Phase] = []
        self.is_hidden = _is_disabled()
        self.is_at_line_start = True
        self._is_drawn = False
        self._started = time.monotonic()
        self._next_line = self._started + FIRST_SECONDS
        self._stream = sys.stderr
        self._replaced: tuple[TextIO, TextIO] | None = None
        self._ended = threading.Event()

    def enter(self, phase: Phase) -> None:
        self.phases.append(phase)
        if len(self.phases) > 1 or self.is_hidden or sys.stderr is None:
            return
        # Imported here and not in the thread, to avoid a deadlock: the import takes the lock of `logging`. A fork takes
        # that lock first, and then waits for `self.lock`, which the thread holds while it shows a phase.
        import tqdm  # noqa: F401

        self._stream, self._ended = sys.stderr, threading.Event()
        if self._stream.isatty():
            self._replaced = sys.stdout, sys.stderr
            if sys.stdout is not None and sys.stdout.isatty():
                sys.stdout = cast(TextIO, _Above(sys.stdout))
            sys.stderr = cast(TextIO, _Above(sys.stderr))
        threading.Thread(target=self._run, args=(self._ended,), name="progress", daemon=True).start()

    def leave(self, phase: Phase) -> None:
        self.phases.remove(phase)
        if not self.phases:
            self._ended.set()
            with self.lock:
                self.erase()
                if self._replaced:
                    sys.stdout, sys.stderr = self._replaced
                    self._replaced = None

    def erase(self) -> None:
        if self._is_drawn:
            self._is_drawn = False
            write_or_drop(self._stream, ERASE)

    def _run(self, ended: threading.Event) -> None:
        # Other threads must receive these signals: one of them may wait until it is safe to end.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
        while not ended.wait(REDRAW_SECONDS):
            # The stream may be closed.
            with suppress(OSError, ValueError), self.lock:
                if self.phases and not (self.is_hidden or ended.is_set()):
                    self._show(self.phases[-1])

    def _show(self, phase: Phase) -> None:
        now = time.monotonic()
        if self._replaced:
            if self.is_at_line_start:
                is_plain = not (self._stream.encoding or "").lower().startswith("utf")
                write_or_drop(self._stream, f"\r{phase.text(shutil.get_terminal_size().columns - 1, is_plain)}\x1b[K")
                self._is_drawn = True
        elif now >= self._next_line:
            write_or_drop(self._stream, f"{phase.text()}\n")
            self._next_line = now + max(LINE_SECONDS, LINE_SHARE * (now - self._started))

    def hide(self) -> None:
        self.is_hidden, self.lock, self._is_drawn = True, threading.RLock(), False


def _is_disabled() -> bool:
    return os.environ.get("TQDM_DISABLE", "0") not in ("", "0")


_display = _Display()
_display.is_hidden = True  # until `show_progress`: a program that imports this package has output of its own
# A forked process may write, but shows no progress.
os.register_at_fork(
    # No fork while the thread writes: the child would wait forever for the lock of the stream.
    before=lambda: _display.lock.acquire(),
    after_in_parent=lambda: _display.lock.release(),
    after_in_child=lambda: _display.hide(),
)


@contextmanager
def progress(what: str, total: float | None = None, unit: str = "", first: float = 0) -> Iterator[Phase]:
    """Show what the command is doing while the body runs. The body calls `advance` if it counts units.

    A terminal shows a bar below all other output, which disappears at the end. Otherwise a line is printed when the
    process has been busy for 5 s, and then at most every 30 s. A short phase shows nothing. Phases may be nested: the
    innermost one is shown.

    Args: see Phase; `first` is the number of units that an earlier process had done.
    """
    phase = Phase(what, total, unit, first)
    _display.enter(phase)
    try:
        yield phase
    finally:
        _display.leave(phase)


def show_progress() -> None:
    """Show progress in this process from now on. Commands call this."""
    _display.is_hidden = _is_disabled()


def is_shown() -> bool:
    """Return whether this process tells the user what it does."""
    return not _display.is_hidden


def hide_progress() -> None:
    """Show no progress in this process from now on. All processes of a job but the first call this."""
    with _display.lock:
        _display.erase()
        _display.is_hidden = True
