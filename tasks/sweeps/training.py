"""Train planned runs as commands, several at a time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from tqdm import tqdm

from ernie_gram.distributed.device import visible_gpus
from ernie_gram.run.termination import noted_signals
from reader.errors import last_error_in
from reader.system.installation import child_environment
from reader.system.processes import available_cores, signal_at_parent_death
from tasks.sweeps.runs import PlannedRun

POLL_SECONDS = 0.5
CONSOLE = "console.txt"
VISIBLE_GPUS = "CUDA_VISIBLE_DEVICES"


def train_all(
    runs: Sequence[PlannedRun], jobs: int, processes: int, ended: Callable[[PlannedRun], str | None]
) -> list[str]:
    """Train runs in order, at most `jobs` at a time, and return a line for each that failed.

    Their folders get the output of the last attempt, console.txt. At a signal or an exception, the runs get SIGTERM
    and are awaited; they save a checkpoint.

    Args:
        processes: of each run, as NPROC. They share the cores; of several runs, each sees its share of the GPUs only.
        ended: records a run that has ended, and returns its result as text, or None if it has none: it has failed.
    """
    jobs = max(1, min(jobs, len(runs)))  # so that fewer runs have more threads each
    threads = max(1, available_cores() // (jobs * processes))
    waiting, shares, failed = list(runs), shares_of_gpus(jobs, processes), list[str]()
    active: dict[PlannedRun, tuple[subprocess.Popen[bytes], dict[str, str]]] = {}
    with noted_signals() as received, tqdm(total=len(runs), desc="training", unit=" runs", disable=None) as bar:
        try:
            while waiting or active:
                while waiting and len(active) < jobs:
                    run, gpus = waiting.pop(0), shares.pop(0)
                    bar.write(f"start {run.name}: {run.folder / CONSOLE}")
                    active[run] = _start(run, processes, threads, gpus), gpus
                time.sleep(POLL_SECONDS)
                if received:
                    raise KeyboardInterrupt if received[0] == signal.SIGINT else SystemExit(128 + received[0])
                for run, (process, gpus) in list(active.items()):
                    if process.poll() is None:
                        continue
                    del active[run]
                    shares.insert(0, gpus)
                    shown = None if process.returncode else ended(run)
                    reason = last_error_in((run.folder / CONSOLE).read_text(errors="replace")) or "no output"
                    bar.write(f"done  {run.name}: {shown}" if shown else f"fail  {run.name}: {reason}")
                    failed += [] if shown else [f"{run.folder / CONSOLE}: the run failed: {reason}"]
                    bar.update()
        finally:
            for process, _ in active.values():
                process.terminate()
            for process, _ in active.values():
                process.wait()
    return failed


def shares_of_gpus(jobs: int, processes: int) -> list[dict[str, str]]:
    """Return the environment of each of the runs that train at the same time, in which a run sees its own GPUs.

    If there are fewer GPUs than processes of all runs, runs share them.
    """
    count = 0 if jobs == 1 else visible_gpus()
    if not count:
        return [{} for _ in range(jobs)]
    visible = os.environ.get(VISIBLE_GPUS)
    names = visible.split(",") if visible else [str(gpu) for gpu in range(count)]
    numbers = [[(job * processes + rank) % count for rank in range(processes)] for job in range(jobs)]
    return [{VISIBLE_GPUS: ",".join(dict.fromkeys(names[number] for number in share))} for share in numbers]


def _start(run: PlannedRun, processes: int, threads: int, gpus: Mapping[str, str]) -> subprocess.Popen[bytes]:
    run.folder.mkdir(exist_ok=True)
    environment = child_environment(
        NPROC=str(processes), LOG_DIR=str(run.folder / "launcher"), OMP_NUM_THREADS=str(threads), **gpus
    )
    with (run.folder / CONSOLE).open("wb") as console:
        return subprocess.Popen(
            [sys.executable, "-m", *run.command],
            env=environment,
            stdout=console,
            stderr=subprocess.STDOUT,
            # Otherwise a run would go on after this process is killed, and the same command could not resume it.
            preexec_fn=partial(signal_at_parent_death, signal.SIGTERM),
        )
