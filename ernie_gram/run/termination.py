"""End a training process on SIGTERM."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

STATUS = 128 + signal.SIGTERM
# Time in seconds for the main thread to end by itself.
GRACE_SECONDS = 10.0


@contextmanager
def exit_at_sigterm(grace_seconds: float = GRACE_SECONDS) -> Iterator[None]:
    """Within the context, SIGTERM prints one line on standard error and ends the process with status 143.

    The main thread ends as soon as it returns to Python code, usually after the current step. It may be blocked in C++
    code, waiting for another process that has already ended; then the process ends after `grace_seconds`. Call it from
    the main thread, after `start_world`, because Paddle installs handlers of its own when it is loaded.
    """
    receiver, sender = socket.socketpair()
    sender.setblocking(False)

    def stop(*_: object) -> None:
        print("terminated by SIGTERM; run the same command again to resume", file=sys.stderr, flush=True)
        sys.exit(STATUS)

    def watch() -> None:
        # Python writes the number of each signal to `sender` at once, even if the main thread is blocked.
        while signals := receiver.recv(1):
            if signals[0] == signal.SIGTERM:
                time.sleep(grace_seconds)
                os._exit(STATUS)

    old_handler = signal.signal(signal.SIGTERM, stop)
    old_fd = signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)
    threading.Thread(target=watch, name="sigterm", daemon=True).start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(old_fd)
        signal.signal(signal.SIGTERM, old_handler)
        sender.close()
