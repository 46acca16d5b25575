"""The cores of this machine: maps over tasks, in threads or in processes that end with theirs; commands; signals."""

from __future__ import annotations

import ctypes
import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from itertools import islice
from typing import Any, TypeVar

from reader.errors import InputError, last_error_in
from reader.system.installation import child_environment

Task = TypeVar("Task")
Result = TypeVar("Result")

_PR_SET_PDEATHSIG = 1  # of prctl
# How the last line of a command that failed begins.
ERROR = "error: "
_function: Callable[[Any], Any] | None = None


def available_cores() -> int:
    """Return the number of cores that this process may use, which `taskset` and batch systems limit."""
    return len(os.sched_getaffinity(0))


def signal_at_parent_death(number: int) -> None:
    """Ask the system to send a signal to this process when its parent ends, even if the parent is killed.

    If the parent has ended already, nothing is sent: compare `os.getppid()` with the expected parent afterwards.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)


@contextmanager
def interrupts_handled_by(handler: Callable[..., object]) -> Iterator[None]:
    """Let a function handle SIGINT in this context, if it is the main thread's.

    A handler other than Python's own is left in place: the caller may have set one, and a background job ignores
    SIGINT.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    with handled_by(handler, signal.SIGINT):
        yield


@contextmanager
def handled_by(handler: Callable[..., object], *signals: int) -> Iterator[None]:
    """Let a function handle some signals in this context; call it from the main thread."""
    before = {number: signal.signal(number, handler) for number in signals}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


def lines_of_module(module: str, *arguments: str) -> Generator[str, None, None]:
    """Run a module as a command, and yield the lines that it prints, without its errors.

    At an exception, or if the generator is closed, the process gets SIGTERM and is awaited: a run saves a checkpoint.
    Raises InputError with its last error if it fails.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        env=child_environment(PYTHONUNBUFFERED="1"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        preexec_fn=partial(signal_at_parent_death, signal.SIGTERM),
    )
    printed = list[str]()
    with process:
        try:
            for line in process.stdout or ():
                printed.append(line)
                if not line.startswith(ERROR):
                    yield line.rstrip("\n")
        except BaseException:
            process.terminate()
            process.communicate()
            raise
    if process.returncode:
        message = last_error_in("".join(printed))
        ended = "" if message.startswith(ERROR) else f"{module} ended with status {process.returncode}: "
        raise InputError(f"{ended}{message.removeprefix(ERROR)}")


def ordered_map(function: Callable[[Task], Result], tasks: Iterable[Task], workers: int) -> Iterator[Result]:
    """Yield function(task) for every task, in the order of the tasks.

    At most workers + 2 tasks are running or waiting to be yielded. Worker processes are forked. Therefore `function`
    may refer to large arrays: they are shared, not copied. If `workers` is 1, this process does the work. An exception
    that `function` raises is raised here. Raises InputError if a worker process is killed.
    """
    if workers == 1:
        yield from map(function, tasks)
        return
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(workers, context, initializer=_start_worker, initargs=(function, os.getpid())) as pool:
        try:
            yield from _in_order(pool, _call_function, tasks, workers + 2)
        except BrokenProcessPool as error:
            raise InputError(
                "a worker process was killed, perhaps because the machine ran out of memory: "
                "use a smaller --memory or fewer --processes, and run the command again"
            ) from error


def prefetched(make: Callable[[Task], Result], tasks: Iterator[Task], workers: int) -> Generator[Result, None, None]:
    """Yield make(task) for every task, in the order of the tasks; threads make results before they are needed.

    Args:
        make: called in several threads at the same time.
        tasks: may be endless.
        workers: number of threads; it does not change the results.
    """
    with ThreadPoolExecutor(workers, thread_name_prefix="feeder") as pool:
        yield from _in_order(pool, make, tasks, max(4, 2 * workers))


def _in_order(
    pool: Executor, function: Callable[[Task], Result], tasks: Iterable[Task], size: int
) -> Generator[Result, None, None]:
    """Yield function(task) for every task, in order; at most `size` tasks are running or waiting to be yielded."""
    waiting: deque[Future[Result]] = deque()
    remaining = iter(tasks)
    try:
        while True:
            waiting.extend(pool.submit(function, task) for task in islice(remaining, size - len(waiting)))
            if not waiting:
                return
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


def _start_worker(function: Callable[[Any], Any], parent: int) -> None:
    """Initialize a worker process: store the function, and make the process end when its parent ends in any way."""
    global _function
    _function = function
    # Do not finalize the parent's garbage here: for programs of Paddle, that would wait for threads, which a fork does
    # not copy.
    gc.freeze()
    # The parent process handles interrupts.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal_at_parent_death(signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _call_function(task: Any) -> Any:
    assert _function is not None
    return _function(task)
