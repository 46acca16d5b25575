"""Pre-train as a rank whose exchanges wait for ever once another rank has died, as NCCL's do.

gloo, which a pretended GPU exchanges through, raises an exception instead. Rank 1 kills itself in its third step. See
tests/ernie_gram/distributed/test_launcher.py.
"""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Callable
from typing import Any

from ernie_gram.distributed.loading import load_paddle
from ernie_gram.distributed.world import RANK
from ernie_gram.pretrain import main
from reader.batches.fields import Batch
from reader.errors import one_line_errors

paddle = load_paddle()
from ernie_gram.training.program import Program  # noqa: E402

train, steps = Program.step, 0


def wait_for_ever() -> None:
    """Lock a mutex twice: the thread waits in C code, which no signal interrupts, so Python's handlers do not run."""
    print("waits as NCCL does", flush=True)
    libc, mutex = ctypes.CDLL(None), ctypes.create_string_buffer(64)
    libc.pthread_mutex_lock(mutex)
    libc.pthread_mutex_lock(mutex)


def waiting(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that waits where the given one fails."""

    def run_or_wait(*arguments: Any, **options: Any) -> Any:
        try:
            return function(*arguments, **options)
        except (RuntimeError, OSError, SystemError):
            wait_for_ever()

    return run_or_wait


def step(program: Program, executor: Any, batch: Batch) -> None:
    """Make a step of training, or die."""
    global steps
    steps += 1
    if RANK == 1 and steps == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    train(program, executor, batch)


paddle.static.Executor.run = waiting(paddle.static.Executor.run)
Program.step = waiting(step)  # type: ignore[method-assign]
print("NCCL_SOCKET_IFNAME", os.environ.get("NCCL_SOCKET_IFNAME"), flush=True)
one_line_errors(main)
