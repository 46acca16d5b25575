"""The process of a check (see processes.py), which writes its result to NAME.json in a folder:

    python -m ernie_gram.gpu_checks.worker NAME FOLDER QUICK LIMIT

QUICK is 1 or 0; LIMIT is in seconds.
"""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import sys
import time
import traceback
from dataclasses import asdict
from importlib import import_module
from pathlib import Path

from ernie_gram.distributed.loading import load_paddle
from ernie_gram.gpu_checks.check import CHECKS, Check, Failed, Result, Setup, Skipped, Status
from reader.errors import InputError
from reader.system.processes import signal_at_parent_death

# Paddle's errors begin with pages about its C++ code; the message follows this line.
_SUMMARY = "Error Message Summary:"


def result_of(check: Check, setup: Setup) -> Result:
    """Run a check, and return its result; an exception becomes a result too."""
    began = time.monotonic()
    status: Status
    try:
        load_paddle()  # as commands do it, before a module imports it
        function = getattr(import_module(f"ernie_gram.gpu_checks.{check.module}"), check.name)
        status, reason = "PASS", function(setup)
    except Skipped as skipped:
        status, reason = "SKIPPED", str(skipped)
    except (Failed, InputError) as error:
        status, reason = "FAIL", str(error)
    except Exception as error:
        traceback.print_exc()
        status, reason = "FAIL", _described(error)
    return Result(check.name, status, " ".join(reason.split()), time.monotonic() - began, setup.numbers)


def _described(error: Exception) -> str:
    """Describe an unexpected error, with the last place in this project that led to it."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "site-packages" not in frame.filename]
    place = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    message = str(error).rpartition(_SUMMARY)[2].strip(" -\n")
    return f"{type(error).__name__}: {message}{place}"


def main() -> None:
    """Run the check."""
    signal_at_parent_death(signal.SIGKILL)
    faulthandler.enable()
    name, folder, quick, limit = sys.argv[1:]
    setup = Setup(Path(folder), quick == "1", int(limit))
    # Just before the time limit, the stacks are written into the log.
    faulthandler.dump_traceback_later(max(1, setup.limit - 1))
    result = result_of(next(check for check in CHECKS if check.name == name), setup)
    (setup.folder / f"{name}.json").write_text(json.dumps(asdict(result)), encoding="utf-8")
    sys.stdout.flush()
    sys.stderr.flush()
    # With GLOG_vmodule, Paddle 3.3.1 fails at a normal exit.
    os._exit(0)


if __name__ == "__main__":
    main()
