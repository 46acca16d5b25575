"""Train the runs of a sweep or of a benchmark, and the options that both commands have."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

from ernie_gram.config.checks import require
from ernie_gram.run.many_runs import CONSOLE, Command, check_devices, last_error, run_all
from ernie_gram.run.run_folder import check_output
from reader.errors import InputError
from reader.plurals import counted
from tasks.metrics.catalog import METRICS
from tasks.reading.data_option import add_data_option
from tasks.sweeps.plan import NO_DEV_SPLIT, SweepRun
from tasks.sweeps.results import Result, reported_value
from tasks.training.prepare import check_settings, prepare

Finished = list[tuple[SweepRun, Result]]


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say where data and results are, and how many runs there are at a time."""
    add_data_option(parser, is_required=True)
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="folder for the runs and the tables")
    parser.add_argument("--seeds", type=int, default=1, metavar="N", help="number of seeds: 1 to N (%(default)s)")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="number of runs at a time (%(default)s)")
    parser.add_argument(
        "--processes", type=int, default=1, metavar="N", help="processes per run, as NPROC (%(default)s)"
    )


def check_run_options(arguments: argparse.Namespace) -> None:
    """Raise InputError for invalid values of the options of `add_run_options`."""
    for name in ("seeds", "jobs", "processes"):
        require(getattr(arguments, name) > 0, f"--{name}", "must be at least 1")
    check_output(arguments.output, option="--output")


def check_runs(runs: Sequence[SweepRun], processes: int) -> None:
    """Raise InputError if an unfinished run cannot be trained, or cannot be compared with the others.

    The runs of a task have the same data and the same model, which are read once; the settings are checked with them.
    """
    unfinished = [run for run in runs if run.result() is None]
    for run in unfinished:
        if run.folder.exists():
            check_output(run.folder)
    asked = ((run.config.trainer.device, run.config.optimizer.precision, "plain") for run in unfinished)
    check_devices(asked, processes)
    for task in dict.fromkeys(run.config.task for run in unfinished):
        first, *others = [run for run in unfinished if run.config.task == task]
        checked = prepare(first.config, processes)
        require(bool(checked.dev), "--data", NO_DEV_SPLIT)
        for run in others:
            check_settings(checked, run.config, processes)


def train(runs: Sequence[SweepRun], parallel: int, processes: int) -> tuple[Finished, list[str]]:
    """Train the unfinished runs, `parallel` at a time; a failed run does not stop the others.

    Returns the finished runs with their results, in order of the plan, and a line for each run that failed.
    """
    results: dict[str, Result] = {run.name: result for run in runs if (result := run.result()) is not None}
    unfinished = {run.name: run for run in runs if run.name not in results}
    print(f"{counted(len(runs), 'run')}, {len(results)} finished before; {parallel} at a time", flush=True)
    began, failed = time.monotonic(), list[str]()

    def ended(command: Command, status: int) -> None:
        result = None if status else unfinished[command.name].result()
        if result is None:
            failed.append(f"{command.folder / CONSOLE}: the run failed: {last_error(command.folder)}")
            print(f"fail  {command.name}: {last_error(command.folder)}", flush=True)
            return
        results[command.name] = result
        trained = len(failed) + sum(name in results for name in unfinished)
        minutes = (time.monotonic() - began) / trained * (len(unfinished) - trained) / 60
        left = f"; about {max(1, round(minutes))} min left" if trained < len(unfinished) else ""
        score = reported_value(METRICS[result["metric"]["name"]], result["score"])
        print(f"done  {command.name}: score {score:.2f}{left}", flush=True)

    run_all([run.command for run in unfinished.values()], parallel, processes, ended)
    return [(run, results[run.name]) for run in runs if run.name in results], failed


def raise_failures(failed: Sequence[str]) -> None:
    """Raise InputError that names the first of some failed runs, if there are any."""
    if failed:
        more = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
        raise InputError(f"{failed[0]}{more}; the same command runs the failed ones again")
