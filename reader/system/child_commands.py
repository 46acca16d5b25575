"""This project's modules as commands in processes of their own: what they print, and their errors."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Generator
from functools import partial

from reader.errors import InputError, last_error_in
from reader.system.installation import child_environment
from reader.system.processes import signal_at_parent_death

# How the last line of a command that failed begins.
ERROR = "error: "


def lines_of_module(module: str, *arguments: str) -> Generator[str, None, None]:
    """Run a module as a command, and yield the lines that it prints, without its errors.

    At an exception, or if the generator is closed, the process gets SIGTERM and is awaited: a run saves a checkpoint.
    Raises InputError with its last error if it fails.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        env=child_environment(PYTHONUNBUFFERED="1"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        preexec_fn=partial(signal_at_parent_death, signal.SIGTERM),
    )
    printed = list[str]()
    with process:
        try:
            for line in process.stdout or ():
                printed.append(line)
                if not line.startswith(ERROR):
                    yield line.rstrip("\n")
        except BaseException:
            process.terminate()
            process.communicate()
            raise
    if process.returncode:
        message = last_error_in("".join(printed))
        ended = "" if message.startswith(ERROR) else f"{module} ended with status {process.returncode}: "
        raise InputError(f"{ended}{message.removeprefix(ERROR)}")
