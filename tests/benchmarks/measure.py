"""Measure CPU seconds, which vary less than wall time on a busy machine. Nothing of this project is imported."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

# The default of run_pretrain.sh.
MALLOC = "glibc.malloc.hugetlb=1:glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=1000000000000"
# Loading Paddle changes the environment, the number of threads for example.
ENVIRONMENT = {"GLIBC_TUNABLES": MALLOC, **os.environ}


def step_seconds(step: Callable[[], object], steps: int) -> dict[str, float]:
    """Return the CPU seconds (all threads) of a first call, and the median wall and CPU seconds of `steps` more."""
    times = []
    for _ in range(steps + 1):
        wall, cpu = time.perf_counter(), time.process_time()
        step()
        times.append((time.perf_counter() - wall, time.process_time() - cpu))
    wall, cpu = (statistics.median(column) for column in zip(*times[1:], strict=True))
    return {"first": times[0][1], "seconds": wall, "cpu": cpu}


def run_module(python: str | Path, module: str, *arguments: object, threads: int) -> dict[str, Any]:
    """Run a module of this folder in an interpreter, with its own packages; return the JSON in its last line."""
    command = [str(python), "-E", "-s", "-m", f"tests.benchmarks.{module}", *map(str, arguments)]
    environment = ENVIRONMENT | {"OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}
    root = Path(__file__).parents[2]
    done = subprocess.run(command, cwd=root, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found
