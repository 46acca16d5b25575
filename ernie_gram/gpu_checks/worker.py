"""A process that makes some checks and writes their results to a file, one line of JSON each: see runner.py.

    python -m ernie_gram.gpu_checks.worker RESULTS FOLDER QUICK LIMIT NAME...

QUICK is 1 or 0; LIMIT is that of each check in seconds, or 0 for its own.
"""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import sys
import time
import traceback
from pathlib import Path

from ernie_gram.gpu_checks.catalog import CHECKS, Check
from ernie_gram.gpu_checks.outcome import Failed, Figures, Result, Setup, Skipped, Status
from reader.errors import InputError
from reader.system.parent_death import signal_at_parent_death

# Paddle's errors begin with pages about its C++ code; the message follows this line.
_SUMMARY = "Error Message Summary:"


def result_of(check: Check, setup: Setup) -> Result:
    """Make a check; whatever it raises becomes its result."""
    began = time.monotonic()

    def result(status: Status, reason: str, figures: Figures | None = None) -> Result:
        return Result(check.name, status, " ".join(reason.split()), time.monotonic() - began, figures or {})

    try:
        passed = check.function()(setup)
    except Skipped as skipped:
        return result("SKIPPED", str(skipped))
    except Failed as failed:
        return result("FAIL", str(failed), failed.figures)
    except InputError as error:
        return result("FAIL", str(error))
    except Exception as error:
        traceback.print_exc()
        return result("FAIL", described(error))
    return result("PASS", passed.summary, passed.figures)


def described(error: Exception) -> str:
    """Return an error that nobody expected, with the place in this project where it was raised."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "site-packages" not in frame.filename]
    place = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    message = str(error).rpartition(_SUMMARY)[2].strip(" -\n")
    return f"{type(error).__name__}: {message}{place}"


def main() -> None:
    """Make the checks."""
    signal_at_parent_death(signal.SIGKILL)
    faulthandler.enable()
    results, folder, quick, limit, *names = sys.argv[1:]
    for check in CHECKS:
        if check.name in names:
            setup = Setup(Path(folder), quick == "1", int(limit) or check.seconds)
            # Into the log, if the runner is about to end this process.
            faulthandler.dump_traceback_later(max(1, setup.limit - 1))
            result = result_of(check, setup)
            with Path(results).open("a", encoding="utf-8") as file:
                file.write(json.dumps(result.as_dict()) + "\n")
    sys.stdout.flush()
    sys.stderr.flush()
    # With GLOG_vmodule, Paddle 3.3.1 fails when a process ends as usual.
    os._exit(0)


if __name__ == "__main__":
    main()
