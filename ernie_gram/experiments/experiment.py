"""An experiment: train the planned runs that are not finished, and write their results. No Paddle here.

The folder --output gets a folder for each run, results.jsonl with a line for each finished run, as soon as it has
ended, and tables. After an interruption, the same command resumes; it does not repeat finished runs.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from ernie_gram.config.checks import require
from ernie_gram.experiments.planned_run import RESULTS, PlannedRun, Result, recorded_runs
from ernie_gram.experiments.processes import end_at_sigterm, train_all
from ernie_gram.experiments.tables import Finished, write_csv
from ernie_gram.run.run_folder import check_output, lock_output
from reader.build_options import parse_positive
from reader.errors import InputError, OneLineParser, counted
from reader.system.atomic_files import write_atomically
from reader.system.output_files import RUN, kind_of

TABLE, CSV = "table.md", "table.csv"


def experiment_parser(description: str | None, with_seeds: bool = True) -> OneLineParser:
    """Return a parser with the options that every experiment has; without --seeds if `with_seeds` is false."""
    parser = OneLineParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument(
        "--output", type=Path, required=True, metavar="DIR", help="folder for the runs, the tables and the figures"
    )
    for name, what in (
        *([("seeds", "number of seeds: 1 to N")] if with_seeds else []),
        ("jobs", "number of runs at a time"),
        ("processes", "processes per run, as NPROC"),
    ):
        parser.add_argument(f"--{name}", type=parse_positive, default=1, metavar="N", help=f"{what} (%(default)s)")
    parser.add_argument("--check", action="store_true", help="plan and check everything, and train nothing")
    return parser


def parse_experiment(parser: argparse.ArgumentParser) -> tuple[argparse.Namespace, list[str]]:
    """Return the parsed options, and those of the runs; raises InputError if --output cannot be written."""
    options, overrides = parser.parse_known_args(_with_values(sys.argv[1:], parser))
    check_folder(options.output)
    return options, overrides


def _with_values(arguments: Sequence[str], parser: argparse.ArgumentParser) -> list[str]:
    """Return arguments with `--a.b VALUE`, the options that the parser does not know, as `--a.b=VALUE`.

    They are those of the runs. Otherwise the parser would take their values for its own arguments.
    """
    joined: list[str] = []
    for argument in arguments:
        last = joined[-1] if joined else ""
        is_unknown = last.startswith("--") and "=" not in last and last not in parser._option_string_actions
        if is_unknown and not argument.startswith("--"):
            joined[-1] += f"={argument}"
        else:
            joined.append(argument)
    return joined


def check_folder(output: Path) -> None:
    """Raise InputError unless --output can be the folder of an experiment; creates nothing."""
    check_output(output, option="--output")
    require(kind_of(output) != RUN, "--output", f"{output} is the folder of a {RUN}; choose another --output")


def check_overrides(overrides: Sequence[str], own: Sequence[str]) -> None:
    """Raise InputError if an option for every run is one of those that the experiment sets itself."""
    for option in overrides:
        key = option.partition("=")[0]
        require(key not in own, key, "not among the options for every run; this command sets it")


def check_earlier(runs: Sequence[PlannedRun], output: Path) -> None:
    """Raise InputError if a folder has the result of a run that is not planned: the tables would lose it."""
    planned = {run.name for run in runs}
    others = [name for name in recorded_runs(output) if name not in planned]
    more = f" (and {len(others) - 1} more)" if len(others) > 1 else ""
    reason = f"{output} has the result of {'; '.join(others[:1])}{more}, which is not among these runs"
    require(not others, "--output", f"{reason}; give its settings as well, or choose another --output")


def run_experiment(
    runs: Sequence[PlannedRun], options: argparse.Namespace, report: Callable[[Finished, Path], str]
) -> None:
    """Train those of the checked runs that are not finished, and write the tables; nothing of it with --check.

    Args:
        options: those of `experiment_parser`.
        report: returns the text of table.md; it may write figures into the given folder.

    Raises InputError that names the first run that failed; a failed run does not stop the others.
    """
    output: Path = options.output
    if options.check:
        before = sum(run.result() is not None for run in runs)
        print(f"{counted(len(runs), 'run')}, {before} finished before; settings, data and model are valid")
        return
    with lock_output(output, "--output"):
        end_at_sigterm()
        finished, failed = train(runs, output, options.jobs, options.processes)
        if finished:
            write_csv(finished, output / CSV)
            text = report(finished, output)
            write_atomically(output / TABLE, text)
            written = [TABLE, CSV, RESULTS, *sorted(path.name for path in output.glob("*.png"))]
            print(f"\n{text}\n{output}: {', '.join(written)}")
    raise_failed(failed)


def raise_failed(failed: Sequence[str]) -> None:
    """Raise InputError with the first line of `failed`, which has a line for each run that failed."""
    if failed:
        more = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
        raise InputError(f"{failed[0]}{more}; the same command runs the failed ones again")


def train(runs: Sequence[PlannedRun], output: Path, jobs: int, processes: int) -> tuple[Finished, list[str]]:
    """Train the unfinished runs, `jobs` at a time, and append their results to results.jsonl in `output`.

    Returns the finished runs with their results, in order of the plan, and a line for each run that failed.
    """
    results = {run: result for run in runs if (result := run.result()) is not None}
    unfinished = [run for run in runs if run not in results]
    print(f"{counted(len(runs), 'run')}, {len(results)} finished before; {jobs} at a time", flush=True)
    for run, result in results.items():
        append_result(run, result, output / RESULTS)

    def record(run: PlannedRun, result: Result) -> None:
        results[run] = result
        append_result(run, result, output / RESULTS)

    failed = train_all(unfinished, jobs, processes, record)
    return [(run, results[run]) for run in runs if run in results], failed


def append_result(run: PlannedRun, result: Result, target: Path) -> None:
    """Append the record of a finished run to a file of JSON lines, unless it is there."""
    line = json.dumps(run.record(result), ensure_ascii=False) + "\n"
    # Half a line of a killed command may end within a character.
    before = target.read_text(encoding="utf-8", errors="replace") if target.is_file() else ""
    if line not in before.splitlines(keepends=True):
        with target.open("a", encoding="utf-8") as file:
            file.write(line if not before or before.endswith("\n") else f"\n{line}")
