"""Work on a stream of tasks by several processes, results in order, memory bounded."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import platform
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar

from reader.errors import SystemRefusedError

Task = TypeVar("Task")
Result = TypeVar("Result")

PR_SET_PDEATHSIG = 1

_work: Callable[[Any], Any] | None = None


def in_order(work: Callable[[Task], Result], tasks: Iterable[Task], workers: int) -> Iterator[Result]:
    """work(task) for every task, in their order; at most workers + 2 tasks are under way or waiting to be yielded.

    Processes are forked, so that `work` may hold large arrays: they are shared, not copied. One worker means this
    process. What `work` raises is raised here; raises SystemRefusedError if a process is killed.
    """
    if workers == 1:
        yield from map(work, tasks)
        return
    waiting: deque[Future[Result]] = deque()
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(workers, context, initializer=_begin, initargs=(work, os.getpid())) as pool:
        try:
            for task in tasks:
                waiting.append(pool.submit(_call, task))
                if len(waiting) > workers + 1:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        except BrokenProcessPool as error:
            raise SystemRefusedError(
                "a worker process was killed, perhaps for want of memory: give a smaller --memory or fewer --workers, "
                "and run the command again"
            ) from error
        finally:
            for future in waiting:
                future.cancel()


def _begin(work: Callable[[Any], Any], parent: int) -> None:
    """In a new process: remember the work, and end with the parent, however that ends."""
    global _work
    _work = work
    # An interrupt is the parent's to handle.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if platform.system() == "Linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)


def _call(task: Any) -> Any:
    assert _work is not None
    return _work(task)
