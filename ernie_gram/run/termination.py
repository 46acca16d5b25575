"""How a process ends that trains: at a signal after a step, with a checkpoint; or because it, or another one, hangs.

SIGTERM, SIGINT and SIGHUP end everything else at once. A process that has lost the connection to another one of its job
ends too, see `lost_peer_error`.

The state here belongs to the process, as signal handlers do.
"""

from __future__ import annotations

import faulthandler
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn, TypeVar

from reader.errors import print_error, print_line
from reader.system.processes import handled_by

Item = TypeVar("Item")

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
# Signals that follow the first one within this time are the same request: a launcher passes on a signal that a batch
# system may have sent to its processes as well.
REPEAT_SECONDS = 1.0
# EX_TEMPFAIL of sysexits.h. The launcher looks for the cause in another process.
LOST_PEER_STATUS = 75
# What gloo and NCCL raise, through Paddle. Of NCCL only its errors of the system (2) and of another process (6): others
# have their cause here, for example a missing libnccl.so. Mostly NCCL raises nothing and waits for ever; then the
# launcher ends this process, or `beat` does.
_LOST = re.compile(
    r"^std::exception$|gloo|nccl error\([26]\)|connection (reset|closed|refused)|broken pipe", re.IGNORECASE
)
# The environment variable with the time in seconds after which a process without progress hangs.
HANG_SECONDS = "ERNIE_GRAM_HANG_SECONDS"
# What faulthandler prints first; the exit status is then 1.
HANG_LINE = re.compile(r"^Timeout \(.*\)!$", re.MULTILINE)


# The signals that have asked the process to end; whether it is in the context `deferred`; whether `end` was called.
_received: list[int] = []
_is_deferred = _is_ending = False


def beat() -> None:
    """Record progress. Without any for HANG_SECONDS, if they are set, the process prints its stacks and ends.

    The thread of faulthandler needs nothing of Python, so it ends a process that is blocked in C++ code as well.
    """
    if seconds := int(os.environ.get(HANG_SECONDS, "0")):
        faulthandler.dump_traceback_later(seconds, file=2, exit=True)


def requested() -> int | None:
    """Return the signal that asked this process to end, or None."""
    return _received[0] if _received else None


def end(number: int) -> NoReturn:
    """Print one line on standard error and end this process with status 128 + number (143, 130 or 129)."""
    global _is_ending
    _is_ending = True
    print_line(f"terminated by {signal.Signals(number).name}; run the same command again to resume")
    sys.exit(128 + number)


def until_requested(items: Iterable[Item]) -> Iterator[Item]:
    """Yield the first item, and the others until this process is asked to end.

    The evaluation of a process that is to end becomes short, but still takes part in the exchanges between processes.
    """
    for item in items:
        yield item
        if requested():
            return


@contextmanager
def deferred() -> Iterator[None]:
    """Within the context, a signal only sets `requested`: the caller polls it, saves, and calls `end`."""
    global _is_deferred
    _is_deferred = True
    try:
        yield
    finally:
        _is_deferred = False
    if number := requested():
        end(number)


@contextmanager
def end_at_signals() -> Iterator[None]:
    """Within the context, SIGTERM ends the process with one line and status 143, SIGINT with 130, SIGHUP with 129.

    The main thread ends as soon as it returns to Python code, and inside `deferred` when it polls. A second signal ends
    the process without a checkpoint.

    Call it from the main thread, after `start_world`, because Paddle installs handlers of its own when it is loaded.
    """
    global _received, _is_ending

    def stop(number: int) -> None:
        if len(_received) > 1:
            os._exit(128 + number)
        if not _is_deferred:
            end(number)
        # The signal may have interrupted a write to the same stream.
        with suppress(RuntimeError):
            name = signal.Signals(number).name
            print_line(f"{name}: ends after this step with a checkpoint; a second signal ends at once")

    # With nohup, a run goes on when its terminal is closed.
    asked = [number for number in SIGNALS if (number, signal.getsignal(number)) != (signal.SIGHUP, signal.SIG_IGN)]
    _received, _is_ending = [], False
    try:
        with _noted(_received, asked, stop):
            yield
    except Exception:
        # Paddle turns an exit that is raised inside one of its C++ calls into an error of another kind.
        if _is_ending:
            sys.exit(128 + _received[0])
        raise
    finally:
        _received = []


@contextmanager
def noted_signals() -> Iterator[list[int]]:
    """Within the context, SIGINT and SIGTERM are noted in the list that is yielded; see REPEAT_SECONDS.

    For processes that start others: Python drops an exception that a handler raises during a fork.
    """
    received = list[int]()
    with _noted(received, (signal.SIGINT, signal.SIGTERM), lambda _: None):
        yield received


@contextmanager
def _noted(received: list[int], numbers: Iterable[int], act: Callable[[int], None]) -> Iterator[None]:
    """Within the context, note signals in a list, repeated ones once, and call `act` with each of them."""
    last = 0.0

    def note(number: int, _: object) -> None:
        nonlocal last
        if not received or time.monotonic() - last > REPEAT_SECONDS:
            last = time.monotonic()
            received.append(number)
            act(number)

    with handled_by(note, *numbers):
        yield


@contextmanager
def lost_peer_error(world_size: int) -> Iterator[None]:
    """Within the context, a failed exchange ends the process with one line and LOST_PEER_STATUS, not a traceback.

    Args:
        world_size: number of processes of the job; with one, no exchange can fail.
    """
    try:
        yield
    except (RuntimeError, OSError, SystemError) as error:
        if world_size == 1 or not _LOST.search(str(error)):
            raise
        print_error(f"lost the connection to another process of this job ({error})")
        sys.exit(LOST_PEER_STATUS)
