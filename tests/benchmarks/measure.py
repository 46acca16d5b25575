"""Measure CPU seconds, which vary less than wall time on a busy machine."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable


def cpu_seconds(work: Callable[[], object], runs: int = 5) -> float:
    """Return the median CPU seconds (all threads) of `runs` calls, after one warm-up call that is not counted."""
    work()
    seconds = []
    for _ in range(runs):
        start = time.process_time()
        work()
        seconds.append(time.process_time() - start)
    return statistics.median(seconds)
