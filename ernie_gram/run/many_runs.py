"""Run many trainings as commands, several at a time. Ablations and sweeps use this. Nothing here imports Paddle."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from reader.errors import InputError
from reader.system.installation import child_environment
from reader.system.parent_death import signal_at_parent_death
from reader.system.progress import progress

POLL_SECONDS = 0.5
CONSOLE = "console.txt"


@dataclass(frozen=True)
class Command:
    """A training as a command.

    Attributes:
        name: for the console.
        folder: of the run; the command's output is appended to console.txt in it.
        arguments: the program and its arguments.
    """

    name: str
    folder: Path
    arguments: tuple[str, ...]


def launcher(module: str) -> tuple[str, ...]:
    """Return the program of a command that starts a training in NPROC processes."""
    return (sys.executable, "-m", module)


def run_all(commands: Sequence[Command], parallel: int, processes: int, ended: Callable[[Command, int], None]) -> None:
    """Run commands, at most `parallel` at a time, in order of the list.

    If this process ends, the commands that are still running get SIGTERM.

    Args:
        processes: number of processes of each command, as NPROC. The cores are divided among all processes.
        ended: called with a command and its exit status; if it raises an exception, no other command goes on.
    """
    waiting = list(commands)
    active: dict[Command, subprocess.Popen[bytes]] = {}
    with progress("training", len(commands), " runs") as phase:
        try:
            while waiting or active:
                while waiting and len(active) < parallel:
                    command = waiting.pop(0)
                    active[command] = _start(command, parallel, processes)
                time.sleep(POLL_SECONDS)
                for command, process in list(active.items()):
                    if process.poll() is not None:
                        del active[command]
                        phase.advance(1)
                        ended(command, process.returncode)
        finally:
            for process in active.values():
                process.terminate()
            for process in active.values():
                process.wait()


def check_devices(devices: Iterable[tuple[str, str, str]], processes: int) -> None:
    """Raise InputError if runs cannot be trained on their devices, for example because there is no GPU.

    Another process finds out, so that this one never loads Paddle, which would hold memory while the runs take place.

    Args:
        devices: trainer.device, optimizer.precision and model.attention of each run.
        processes: of each run.
    """
    for asked in dict.fromkeys(devices):
        command = [sys.executable, "-m", "ernie_gram.distributed.check_device", *asked, str(processes)]
        done = subprocess.run(command, env=child_environment(), stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            raise InputError(done.stderr.strip().rpartition("\n")[2].removeprefix("error: "))


def stop_at_sigterm() -> None:
    """End this process at SIGTERM with an exception, so that `run_all` stops its commands."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))


def last_error(folder: Path) -> str:
    """Return the last error that a run printed, or else its last line."""
    lines = (folder / CONSOLE).read_text(errors="replace").strip().splitlines()
    # With several processes the last lines are those of the launcher.
    errors = [line for line in lines if line.startswith("error: ")] or lines
    return " ".join(errors[-1:])


def _start(command: Command, parallel: int, processes: int) -> subprocess.Popen[bytes]:
    command.folder.mkdir(exist_ok=True)
    threads = max(1, (os.cpu_count() or 1) // (parallel * processes))
    environment = child_environment(
        NPROC=str(processes), LOG_DIR=str(command.folder / "launcher"), OMP_NUM_THREADS=str(threads)
    )
    print(f"start {command.name}: {command.folder / CONSOLE}", flush=True)
    with (command.folder / CONSOLE).open("ab") as console:
        return subprocess.Popen(
            command.arguments,
            env=environment,
            stdout=console,
            stderr=subprocess.STDOUT,
            # Otherwise a run would go on if this process is killed, and the same command could not resume it.
            preexec_fn=partial(signal_at_parent_death, signal.SIGTERM),
        )
