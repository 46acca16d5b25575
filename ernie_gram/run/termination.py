"""SIGTERM, SIGINT and SIGHUP: training ends after a step, with a checkpoint; everything else ends at once.

A process that has lost the connection to another one of its job ends too, see `lost_peer_error`.

The state here belongs to the process, as signal handlers do.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NoReturn, TypeVar

from reader.commands import handled_by
from reader.errors import print_error, print_line

Item = TypeVar("Item")

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
# Time in seconds for the main thread to end by itself when nothing has to be saved, or when the launcher was killed.
GRACE_SECONDS = 45.0
# Signals that follow the first one within this time are the same request: a launcher may pass on a signal that its
# processes have received as well, and Paddle's launcher sends SIGTERM three times within 0.4 s.
REPEAT_SECONDS = 1.0
# The longest time that the last line of a process waits for the line about its signal.
NOTICE_SECONDS = 1.0
# EX_TEMPFAIL of sysexits.h. The launcher looks for the cause in another process.
LOST_PEER_STATUS = 75
# What gloo and NCCL raise, through Paddle. Of NCCL only its errors of the system (2) and of another process (6): others
# have their cause here, for example a missing libnccl.so. Mostly NCCL raises nothing and waits for ever; then the
# launcher ends this process.
_LOST = re.compile(
    r"^std::exception$|gloo|nccl error\([26]\)|connection (reset|closed|refused)|broken pipe", re.IGNORECASE
)


@dataclass
class _State:
    """The state of the process.

    Attributes:
        number: the signal that asked it to end, or None.
        is_deferred: whether it is in the context `deferred`.
        is_ending: whether `end` was called.
        is_noticed: set when the thread has printed its line about the signal, if there is one.
    """

    number: int | None = None
    is_deferred: bool = False
    is_ending: bool = False
    is_noticed: threading.Event = field(default_factory=threading.Event)


_state = _State()


def requested() -> int | None:
    """Return the signal that asked this process to end, or None."""
    return _state.number


def end(number: int) -> NoReturn:
    """Print one line on standard error and end this process with status 128 + number (143, 130 or 129)."""
    _state.is_ending = True
    if _state.number is not None:
        # Otherwise the lines of the two threads might be mixed.
        _state.is_noticed.wait(NOTICE_SECONDS)
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
    _state.is_deferred = True
    try:
        yield
    finally:
        if _state.number is not None:
            _state.is_noticed.wait(NOTICE_SECONDS)
        _state.is_deferred = False
    if _state.number is not None:
        end(_state.number)


@contextmanager
def end_at_signals(grace_seconds: float = GRACE_SECONDS) -> Iterator[None]:
    """Within the context, SIGTERM ends the process with one line and status 143, SIGINT with 130, SIGHUP with 129.

    The main thread ends as soon as it returns to Python code, and inside `deferred` when it polls. It may be blocked
    in C++ code, waiting for another process that has already ended; then the process ends after `grace_seconds`
    (inside `deferred` only if its parent has ended too). A second signal ends the process at once in every case.

    Call it from the main thread, after `start_world`, because Paddle installs handlers of its own when it is loaded.
    """
    receiver, sender = socket.socketpair()
    sender.setblocking(False)
    _state.number, _state.is_deferred, _state.is_ending = None, False, False
    _state.is_noticed.clear()

    def stop(number: int, _: object) -> None:
        _state.number = _state.number or number
        if not _state.is_deferred:
            end(number)

    # With nohup, a run goes on when its terminal is closed.
    asked = [number for number in SIGNALS if (number, signal.getsignal(number)) != (signal.SIGHUP, signal.SIG_IGN)]
    old_fd = signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)
    watch = threading.Thread(target=_watch, args=(receiver, os.getppid(), grace_seconds), name="signals", daemon=True)
    watch.start()
    try:
        with handled_by(stop, *asked):
            yield
    except Exception:
        # Paddle turns an exit that is raised inside one of its C++ calls into an error of another kind.
        if _state.is_ending and _state.number is not None:
            sys.exit(128 + _state.number)
        raise
    finally:
        signal.set_wakeup_fd(old_fd)
        sender.close()
        _state.number = None


@contextmanager
def noted_signals() -> Iterator[list[int]]:
    """Within the context, SIGINT and SIGTERM are noted in the list that is yielded; see REPEAT_SECONDS.

    For processes that start others: Python drops an exception that a handler raises during a fork.
    """
    received, last = list[int](), 0.0

    def note(number: int, _: object) -> None:
        nonlocal last
        if not received or time.monotonic() - last > REPEAT_SECONDS:
            received.append(number)
            last = time.monotonic()

    with handled_by(note, signal.SIGINT, signal.SIGTERM):
        yield received


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


def _watch(receiver: socket.socket, parent: int, grace_seconds: float) -> None:
    """React to signals although the main thread may be blocked: Python writes their numbers to a socket at once."""
    first = 0.0
    while True:
        try:
            received = receiver.recv(1)
        except TimeoutError:
            os._exit(128 + (_state.number or signal.SIGTERM))
        if not received:
            return
        number = received[0]
        if number not in SIGNALS:
            continue
        if first:
            if time.monotonic() - first > REPEAT_SECONDS:
                os._exit(128 + number)
            continue
        first = time.monotonic()
        _state.number = _state.number or number
        if not _state.is_deferred or os.getppid() != parent:
            receiver.settimeout(grace_seconds)
        if _state.is_deferred:
            name = signal.Signals(number).name
            print_line(f"{name}: ends after this step with a checkpoint; a second signal ends at once")
        _state.is_noticed.set()
