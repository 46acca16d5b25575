"""Make checks in processes of their own: one that hangs or ends its process fails, and the others go on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from ernie_gram.gpu_checks.catalog import FIRST, PROCESSES, Check
from ernie_gram.gpu_checks.outcome import Figures, Result
from reader.system.installation import child_environment

# The process that makes checks.
WORKER = "ernie_gram.gpu_checks.worker"
POLL_SECONDS = 0.05
LOG_LINES, LINE_LENGTH = 30, 300


def run_checks(checks: Sequence[Check], folder: Path, quick: bool, limit: int = 0) -> Generator[Result, None, None]:
    """Make checks in their order, and yield their results; if FIRST fails, the others are skipped.

    Args:
        folder: for files; processes write their logs there.
        quick: see Setup.
        limit: seconds of each check; 0 for its own.
    """
    left = list(checks)
    while left:
        process = left[0].process
        together = next(list(group) for _, group in groupby(left, key=lambda check: check.process))
        for result in _run_together(together, folder, quick, limit, PROCESSES[process]):
            del left[0]
            yield result
            if result.name == FIRST and result.status == "FAIL":
                yield from (Result(check.name, "SKIPPED", f"see {FIRST}", 0.0) for check in left)
                return


def _run_together(
    checks: Sequence[Check], folder: Path, quick: bool, limit: int, environment: Mapping[str, str]
) -> Iterator[Result]:
    """Yield the results of checks that one process makes; it ends with the first that ends the process or hangs."""
    results, log = (folder / f"{checks[0].name}.{ending}" for ending in ("jsonl", "log"))
    results.write_text("")
    names = [check.name for check in checks]
    arguments = [str(results), str(folder), str(int(quick)), str(limit), *names]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", WORKER, *arguments],
            env=child_environment(**environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        for index, check in enumerate(checks):
            began, seconds = time.monotonic(), limit or check.seconds
            found = _wait_for(process, results, index, began + seconds)
            if isinstance(found, Result):
                yield found if found.status != "FAIL" else replace(found, figures=found.figures | _log_of(log))
                continue
            reason = f"no result after {seconds} s; its process was ended" if found is None else _ending(found, log)
            yield Result(check.name, "FAIL", reason, time.monotonic() - began, _log_of(log))
            return
    finally:
        kill_tree(process.pid)
        process.wait()


def _wait_for(process: subprocess.Popen[bytes], results: Path, index: int, deadline: float) -> Result | int | None:
    """Return a result; or the status of the process if it has ended without it; or None at the deadline."""
    while time.monotonic() < deadline:
        # Asked first, because it writes its last result before it ends.
        status = process.poll()
        lines = results.read_text(encoding="utf-8").split("\n")[:-1]
        if len(lines) > index:
            return Result(**json.loads(lines[index]))
        if status is not None:
            return status
        time.sleep(POLL_SECONDS)
    return None


def _ending(status: int, log: Path) -> str:
    how = f"was killed by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
    last = (_log_of(log)["log"] or ["no output"])[-1]
    return f"its process {how}: {last}"


def _log_of(log: Path) -> Figures:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    return {"log": [line[:LINE_LENGTH] for line in lines if line.strip()][-LOG_LINES:]}


def kill_tree(root: int) -> None:
    """Kill a process and all that it has started; some of them lead groups of their own."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            children.setdefault(int(stat.read_text().rpartition(")")[2].split()[1]), []).append(int(stat.parent.name))
    queue = [root]
    while queue:
        process = queue.pop()
        queue += children.get(process, [])
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
