"""The cores of this machine."""

from __future__ import annotations

import os


def available_cores() -> int:
    """Return the number of cores that this process may use, which `taskset` and batch systems limit."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
