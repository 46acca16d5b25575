"""Timing a piece of work in CPU seconds, which a busy machine disturbs less than wall time."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable


def cpu_seconds(work: Callable[[], object], runs: int = 5) -> float:
    """Median CPU seconds (all threads) of `runs` calls, after one that is not counted."""
    work()
    seconds = []
    for _ in range(runs):
        start = time.process_time()
        work()
        seconds.append(time.process_time() - start)
    return statistics.median(seconds)
