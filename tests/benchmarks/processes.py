"""Run a module of the benchmarks in a process, of this interpreter or of another one."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from reader.errors import InputError
from tests.support.commands import ROOT

# The default of run_pretrain.sh.
MALLOC = "glibc.malloc.hugetlb=1:glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=1000000000000"
# Loading Paddle changes the environment, the number of threads for example.
ENVIRONMENT = {"GLIBC_TUNABLES": MALLOC, **os.environ}


def run_module(python: str | Path, module: str, arguments: Iterable[object], threads: int) -> dict[str, Any]:
    """Run a module of the benchmarks in an interpreter with `threads` threads; return what the last line of its
    output says.

    The interpreter's own packages are used, not those of PYTHONPATH. Raises InputError if the process fails.
    """
    command = [str(python), "-E", "-s", "-m", module, *map(str, arguments)]
    environment = {**ENVIRONMENT, "OMP_NUM_THREADS": str(threads)}
    done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise InputError(f"{' '.join(command)}: failed, see above")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found
