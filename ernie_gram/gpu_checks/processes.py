"""Run each check in a process of its own, so that one that hangs or crashes does not stop the others."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from ernie_gram.gpu_checks.check import Check, Result
from reader.system.installation import child_environment

# The module of the process that runs a check, and the variable that marks it and the processes that it starts.
WORKER = "ernie_gram.gpu_checks.worker"
MARK = "ERNIE_GRAM_GPU_CHECK"
LOG_LINES, LINE_LENGTH = 30, 300


def run_check(check: Check, folder: Path, quick: bool, limit: int) -> Result:
    """Run a check, and return its result; its log and its result are also written to the folder.

    Args:
        folder, quick: see Setup.
        limit: time limit in seconds; 0 for the check's own.
    """
    began, seconds = time.monotonic(), limit or check.seconds
    log, written = (folder / f"{check.name}.{ending}" for ending in ("log", "json"))
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", WORKER, check.name, str(folder), str(int(quick)), str(seconds)],
            env=child_environment(**check.environment, **{MARK: str(folder)}),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        status = process.wait(seconds)
        how = f"was killed by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
    except subprocess.TimeoutExpired:
        how = ""
    finally:
        process.kill()
        for each in processes_with(f"{MARK}={folder}"):
            with suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)
        process.wait()
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    last = [line[:LINE_LENGTH] for line in lines if line.strip()][-LOG_LINES:]
    if written.is_file():
        result = Result(**json.loads(written.read_text(encoding="utf-8")))
    else:
        reason = f"its process {how}: {(last or ['no output'])[-1]}"
        reason = reason if how else f"no result after {seconds} s; its process was ended"
        result = Result(check.name, "FAIL", reason, time.monotonic() - began, {})
    if result.status == "FAIL":
        result.numbers["log"] = last
    return result


def processes_with(*variables: str) -> list[int]:
    """Return the IDs of the processes that were started with all these environment variables, such as "RANK=1"."""
    wanted, found = {variable.encode() for variable in variables}, []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):  # the process has ended, or belongs to another user
            if wanted <= set(path.read_bytes().split(b"\0")):
                found.append(int(path.parent.name))
    return found
