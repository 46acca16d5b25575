"""Train planned runs as commands, several at a time. Nothing here imports Paddle."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from statistics import mean

from ernie_gram.experiments.planned_run import PlannedRun, Result
from ernie_gram.run.run_folder import check_output
from reader.errors import InputError, last_error_in
from reader.system.installation import child_environment
from reader.system.processes import available_cores, signal_at_parent_death
from reader.system.progress import progress

POLL_SECONDS = 0.5
CONSOLE = "console.txt"
VISIBLE_GPUS = "CUDA_VISIBLE_DEVICES"
# How the last line of a command that failed begins.
ERROR = "error: "
# The line between two attempts of a run in its file of output.
_AGAIN = "--- started again\n"
SIGNALS = (signal.SIGINT, signal.SIGTERM)


def end_at_sigterm() -> None:
    """Make SIGTERM raise SystemExit, so that `train_each` stops the runs."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))


@contextmanager
def _delayed_signals() -> Iterator[None]:
    """Delay signals that have a handler to the end of the context.

    Otherwise a handler could run in the functions that Python calls at a fork, which drop its exception.
    """
    kept = list[int]()
    handlers = {number: handler for number in SIGNALS if callable(handler := signal.getsignal(number))}
    for number in handlers:
        signal.signal(number, lambda received, _: kept.append(received))
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for received in kept:
            signal.raise_signal(received)


def check_folders_and_devices(runs: Sequence[PlannedRun], processes: int) -> None:
    """Raise InputError if runs cannot be written to their folders, or trained on their devices.

    Another process looks for GPUs, so that this one never loads Paddle, which would hold memory while the runs train.

    Args:
        processes: of each run.
    """
    for run in runs:
        if run.folder.exists():
            check_output(run.folder)
    for device in dict.fromkeys(run.device for run in runs):
        run_module("ernie_gram.distributed.check_device", *device, str(processes))


def run_module(module: str, *arguments: str) -> str:
    """Run a module as a command in a process of its own, and return what it prints.

    Raises InputError with its last error if it fails.
    """
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(command, env=child_environment(), capture_output=True, text=True, check=False)
    if done.returncode:
        raise InputError(last_error_in(done.stderr).removeprefix(ERROR))
    return done.stdout


def lines_of_module(module: str, *arguments: str) -> Generator[str, None, None]:
    """Run a module as a command in a process of its own, and yield the lines that it prints, without its errors.

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


def train_all(
    runs: Sequence[PlannedRun],
    jobs: int,
    processes: int,
    record: Callable[[PlannedRun, Result], object],
    needs: Mapping[PlannedRun, PlannedRun] | None = None,
    threads: int | None = None,
) -> list[str]:
    """Train runs as `train_each` does, print a line for each, and return a line for each that failed.

    `record` is called with each run that has finished, and its result. A run that ends without a result has failed
    too. At an exception, the other runs are stopped.
    """
    failed, unfinished, spent = list[str](), list(runs), dict[type[PlannedRun], list[float]]()
    needs = needs or {}
    with closing(train_each(runs, jobs, processes, needs, threads)) as ended:
        for run, result, seconds in ended:
            unfinished.remove(run)
            if result is None:
                reason = last_error(run.folder)
                failed.append(f"{run.folder / CONSOLE}: the run failed: {reason}")
                print(f"fail  {run.name}: {reason}", flush=True)
                unfinished = _independent(unfinished, run, needs)
                continue
            spent.setdefault(type(run), []).append(seconds)
            record(run, result)
            name, value = next(iter(result.items()))
            shown = f"{value:,.2f}" if abs(value) >= 0.1 else f"{value:.4g}"
            print(f"done  {run.name}: {name} {shown}{time_left(unfinished, spent, jobs)}", flush=True)
    return failed


def time_left(runs: Sequence[PlannedRun], spent: Mapping[type[PlannedRun], Sequence[float]], jobs: int) -> str:
    """Return the estimated time for unfinished runs as text; "" if there are none, or if no estimate is possible yet.

    Args:
        spent: the seconds of the ended runs of each kind; without an ended run of every kind there is no estimate.
        jobs: number of runs at a time.
    """
    if not runs or not {type(run) for run in runs} <= spent.keys():
        return ""
    seconds = sum(mean(spent[type(run)]) for run in runs) / min(jobs, len(runs))
    return f"; about {max(1, round(seconds / 60))} min left"


def train_each(
    runs: Sequence[PlannedRun],
    jobs: int,
    processes: int,
    needs: Mapping[PlannedRun, PlannedRun] | None = None,
    threads: int | None = None,
) -> Generator[tuple[PlannedRun, Result | None, float], None, None]:
    """Train runs in order of the list, at most `jobs` at a time.

    Yields each when it has ended, with its result, None if it failed or has none, and the seconds that it took.

    The output of a run is appended to console.txt in its folder. If this process ends, or closes the iterator, the runs
    that still train get SIGTERM.

    Args:
        processes: of each run, as NPROC. Of several runs at a time, each sees its own share of the GPUs only.
        needs: run -> the run of the list that must finish before it starts. If that run fails or has no result, neither
            it nor a run that needs it starts.
        threads: of each process; None divides the cores among all processes.
    """
    waiting, needs = list(runs), needs or {}
    jobs = max(1, min(jobs, len(runs)))  # so that fewer runs have more threads each
    threads = threads or max(1, available_cores() // (jobs * processes))
    active: dict[PlannedRun, tuple[subprocess.Popen[bytes], float, dict[str, str]]] = {}
    shares = shares_of_gpus(jobs, processes)
    with progress("training", len(runs), " runs") as phase:
        try:
            while waiting or active:
                busy = {*waiting, *active}
                for run in [run for run in waiting if needs.get(run) not in busy][: jobs - len(active)]:
                    waiting.remove(run)
                    with _delayed_signals():
                        gpus = shares.pop(0)
                        active[run] = _start(run, processes, threads, gpus), time.monotonic(), gpus
                time.sleep(POLL_SECONDS)
                for run, (process, began, gpus) in list(active.items()):
                    if process.poll() is not None:
                        del active[run]
                        shares.insert(0, gpus)
                        phase.advance(1)
                        result = None if process.returncode else run.result()
                        if result is None:
                            waiting = _independent(waiting, run, needs)
                        yield run, result, time.monotonic() - began
        finally:
            for process, *_ in active.values():
                process.terminate()
            for process, *_ in active.values():
                process.wait()


def _independent(
    runs: Sequence[PlannedRun], failed: PlannedRun, needs: Mapping[PlannedRun, PlannedRun]
) -> list[PlannedRun]:
    """Return the runs that do not need a run that has failed, directly or through another one."""
    lost = {failed}
    while more := {run for run, needed in needs.items() if needed in lost} - lost:
        lost |= more
    return [run for run in runs if run not in lost]


def last_error(folder: Path) -> str:
    """Return the last error that the last attempt of a run printed, or else its last line."""
    printed = (folder / CONSOLE).read_text(errors="replace")
    return last_error_in(printed.rpartition(_AGAIN)[2]) or "no output"


def shares_of_gpus(jobs: int, processes: int) -> list[dict[str, str]]:
    """Return the environment of each of the runs that train at the same time, in which a run sees its own GPUs.

    If there are fewer GPUs than processes of all runs, runs share them. GPUs that the user has named in LAUNCH_ARGS are
    those of every run.

    Args:
        jobs: number of runs at a time.
        processes: of each run.
    """
    is_named = re.search("--devices|--gpus", os.environ.get("LAUNCH_ARGS", ""))
    count = 0 if jobs == 1 or is_named else int(run_module("ernie_gram.distributed.count_gpus"))
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
    print(f"start {run.name}: {run.folder / CONSOLE}", flush=True)
    with (run.folder / CONSOLE).open("ab") as console:
        if console.tell():
            console.write(_AGAIN.encode())
            console.flush()
        return subprocess.Popen(
            run.command,
            env=environment,
            stdout=console,
            stderr=subprocess.STDOUT,
            # Otherwise a run would go on after this process is killed, and the same command could not resume it.
            preexec_fn=partial(signal_at_parent_death, signal.SIGTERM),
        )
