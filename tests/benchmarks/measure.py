"""Measure CPU seconds, which vary less than wall time on a busy machine. Nothing of this project is imported."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable
from typing import TypeVar

Item = TypeVar("Item")
Times = list[tuple[float, float]]  # wall and CPU seconds


def cpu_seconds(work: Callable[[], object], runs: int = 5) -> float:
    """Return the median CPU seconds (all threads) of `runs` calls, after one warm-up call that is not counted."""
    _, *times = times_of(lambda _: work(), range(runs + 1))
    return statistics.median(cpu for _, cpu in times)


def times_of(work: Callable[[Item], object], items: Iterable[Item]) -> Times:
    """Return the wall and CPU seconds (all threads) of a call of `work` on each item."""
    times = []
    for item in items:
        wall, cpu = time.perf_counter(), time.process_time()
        work(item)
        times.append((time.perf_counter() - wall, time.process_time() - cpu))
    return times


def step_seconds(step: Callable[[], object], steps: int) -> dict[str, float]:
    """Return the CPU seconds of a first call, and the median wall and CPU seconds of `steps` more calls."""
    (_, first), *times = times_of(lambda _: step(), range(steps + 1))
    wall, cpu = (statistics.median(column) for column in zip(*times, strict=True))
    return {"first": first, "seconds": wall, "cpu": cpu}
