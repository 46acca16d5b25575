"""Load Paddle: with the number of threads that it reads then, and without its messages and signal handlers."""

from __future__ import annotations

import io
import os
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from types import ModuleType

from reader.commands import interrupts_end_at_once
from reader.system.progress import progress

PROCESSES_ON_THIS_MACHINE = int(os.environ.get("PADDLE_LOCAL_SIZE", "1"))
# Paddle's default is one thread. The processes of this machine share its cores.
os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // PROCESSES_ON_THIS_MACHINE)))
# Paddle's own messages (thread advice, changed flags, the executor's log lines) are hidden unless this is 1.
IS_VERBOSE = os.environ.get("PADDLE_VERBOSE") == "1"
if not IS_VERBOSE:
    os.environ.setdefault("GLOG_minloglevel", "2")  # of the C++ code; errors are still shown
    warnings.filterwarnings("ignore", category=UserWarning, module=r"paddle\.")


@contextmanager
def quiet() -> Iterator[None]:
    """Hide what Python code prints in the context, unless PADDLE_VERBOSE=1; after an exception it is printed."""
    if IS_VERBOSE:
        yield
        return
    hidden = io.StringIO()
    try:
        with redirect_stdout(hidden), redirect_stderr(hidden):
            yield
    except BaseException:
        sys.stderr.write(hidden.getvalue())
        raise


@contextmanager
def delayed_sigterm() -> Iterator[None]:
    """Let a SIGTERM that arrives in the context take effect at its end."""
    old_mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, old_mask)


def load_paddle() -> ModuleType:
    """Import Paddle without its messages and its signal handlers, and return it."""
    # Paddle's signal handlers are in effect between these two lines. They allocate memory, which can block for ever if
    # the signal arrives during an allocation, and they end the process with another status.
    with progress("loading Paddle"), quiet(), delayed_sigterm(), interrupts_end_at_once():
        import paddle

        paddle.disable_signal_handler()
    return paddle
