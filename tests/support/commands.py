"""Run the project's commands, either in this process, which is faster, or in a new one."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch
from uuid import uuid4

import pytest

from reader import console_script
from reader.errors import InputError, one_line_errors
from reader.system.output_files import check_output_path

ROOT = Path(__file__).resolve().parents[2]
# The arguments of Python that start the console script.
ERNIE_GRAM = ("-m", "reader.console_script")
START_RANKS = """
import os, sys
from ernie_gram.distributed.launcher import Processes, start_ranks
from reader.errors import one_line_errors
number, os.environ["LOG_DIR"], *command = sys.argv[1:]
one_line_errors(lambda: start_ranks(command, Processes(int(number), int(number), 0), 300))
"""


class Done(NamedTuple):
    """The result of a command."""

    returncode: int
    stdout: str
    stderr: str

    def ok(self) -> Done:
        """Return the result, which must be that of a success."""
        assert self.returncode == 0, self.stdout + self.stderr
        return self

    def refused(self) -> str:
        """Return the last line of standard error of a command that must have refused what it was given."""
        assert self.returncode == 2, self.stderr
        return self.stderr.splitlines()[-1]


def call(main: Callable[[], None], *arguments: str, stdin: bytes | None = None) -> Done:
    """Run a command's `main` in this process, and capture its output.

    Without `stdin`, standard input is closed.
    """
    status, stdout, stderr = 0, io.StringIO(), io.StringIO()
    given = None if stdin is None else io.TextIOWrapper(io.BytesIO(stdin))
    with (
        patch.object(sys, "argv", ["command", *arguments]),
        patch.object(sys, "stdin", given),
        redirect_stdout(stdout),
        redirect_stderr(stderr),
    ):
        try:
            one_line_errors(main)
        except SystemExit as exit_:
            status = int(exit_.code or 0)
    return Done(status, stdout.getvalue(), stderr.getvalue())


def shell(*command: str, cwd: Path | str = ROOT, timeout: float = 300, **environment: str | None) -> Done:
    """Run a command in a new process, by default from the root of the checkout, and capture its output.

    Variables that are None are not inherited.
    """
    variables = {**os.environ, "PYTHON": sys.executable, **environment}
    inherited = {name: value for name, value in variables.items() if value is not None}
    done = subprocess.run(command, cwd=cwd, env=inherited, capture_output=True, text=True, check=False, timeout=timeout)
    return Done(done.returncode, done.stdout, done.stderr)


def python(*arguments: str, **more: Any) -> Done:
    """Run Python with this project in a new process, and capture its output; `more` is as in `shell`."""
    return shell(sys.executable, *arguments, **{"PYTHONPATH": str(ROOT), **more})


@contextmanager
def started(
    *arguments: str, stdout: Any = subprocess.PIPE, stderr: Any = None, **environment: str
) -> Iterator[subprocess.Popen[str]]:
    """Start Python with this project in a new process; at the end, it and all processes that it started are killed."""
    mark = {"STARTED_BY_A_TEST": uuid4().hex}
    variables = {"PYTHONPATH": str(ROOT), **os.environ, **mark, **environment}
    command = [sys.executable, *arguments]
    with subprocess.Popen(command, cwd=ROOT, env=variables, stdout=stdout, stderr=stderr, text=True) as process:
        try:
            yield process
        finally:
            for number in processes_with(**mark):
                with suppress(ProcessLookupError):
                    os.kill(number, signal.SIGKILL)


def in_ranks(log: Path, script: str = "", number: int = 2) -> list[str]:
    """Return the arguments of Python that run a script, or else `pretrain`, in some processes with our launcher."""
    command = [str(ROOT / script)] if script else [console_script.__file__, "pretrain"]
    return ["-c", START_RANKS, str(number), str(log), *command]


def build(*arguments: str) -> None:
    """Run a command of the reader in this process; it must succeed."""
    from reader.build import main

    call(main, *arguments).ok()


def wait_for(condition: Callable[[], object], seconds: float = 120) -> bool:
    """Wait until `condition()` is true, for a limited time; return whether it is."""
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    return bool(condition())


def processes_with(**variables: str) -> dict[int, set[str]]:
    """Return the variables, NAME=VALUE, of the environments that have all of these, by the ID of the process."""
    wanted = {"=".join(each) for each in variables.items()}
    found: dict[int, set[str]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # the process has ended, or belongs to another user
            environment = {*(folder / "environ").read_bytes().decode(errors="replace").split("\0")}
            if wanted <= environment and (folder / "cmdline").read_bytes():
                found[int(folder.name)] = environment
    return found


def ranks_with(**variables: str) -> dict[int | None, int]:
    """Return the ID of each process whose environment has all of these by its rank, None for a launcher."""
    found: dict[int | None, int] = {}
    # A process that a rank has started has a larger ID.
    for process, environment in sorted(processes_with(**variables).items(), reverse=True):
        ranks = [int(line.split("=")[1]) for line in environment if line.startswith("PADDLE_TRAINER_ID=")]
        found[ranks[0] if ranks else None] = process
    return found


def is_alive(process: int) -> bool:
    """Return whether a process exists and is not a zombie."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def kill_when(arguments: list[str], condition: Callable[[], object]) -> None:
    """Start a Python command, kill it and its children as soon as `condition()` is true, and wait until all ended."""
    process = subprocess.Popen(
        [sys.executable, *arguments],
        cwd=ROOT,
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < deadline and not condition():
        time.sleep(0.002)
    os.killpg(process.pid, signal.SIGKILL)
    # Ends when the last of them has closed the pipe, so that none holds a lock any more.
    process.communicate()


def assert_one_line_error(done: Done, message: str, status: int = 2) -> None:
    """Assert that a command printed nothing but one line, "error: " and a text that begins with a message."""
    assert (done.returncode, done.stdout) == (status, "")
    assert done.stderr.startswith(f"error: {message}")
    assert done.stderr.count("\n") == 1


def assert_every_file_is_own(folder: Path, kind: str) -> None:
    """Assert that a folder has files, and that none of them may be an output, because it belongs to this kind."""
    paths = [path for path in folder.rglob("*") if path.is_file()]
    assert paths
    for path in paths:
        with pytest.raises(InputError, match=f"belongs to the {kind} in "):
            check_output_path("--to", path, True)
