"""Fine-tune a model on all tasks of a benchmark whose files are there, and print one table.

    ernie-gram benchmark english MODEL --data FOLDER --output output/english --seeds 3

The benchmarks are the files in conf/benchmarks; the settings of each task are those of conf/tasks. Other options are
passed to every run. After an interruption, the same command resumes; it does not repeat finished runs.
"""

from __future__ import annotations

from reader.commands import run_command

if __name__ == "__main__":
    run_command("tasks.benchmark")

import argparse
from pathlib import Path

from ernie_gram.config.checks import require
from ernie_gram.run.many_runs import stop_at_sigterm
from ernie_gram.run.run_folder import lock_output
from reader.errors import InputError, OneLineParser
from reader.system.atomic_files import atomic_file
from tasks.layouts.columns import similar
from tasks.sweeps.benchmarks import BENCHMARKS, available_tasks, read_benchmark, table
from tasks.sweeps.plan import plan
from tasks.sweeps.runs import add_run_options, check_run_options, check_runs, raise_failures, train


def parse_arguments() -> tuple[argparse.Namespace, list[str]]:
    """Return the parsed options and those for every run; raises InputError."""
    parser = OneLineParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    names = ", ".join(sorted(path.stem for path in BENCHMARKS.glob("*.yaml")))
    parser.add_argument("benchmark", metavar="NAME", help=f"{names}, or a YAML file like those in conf/benchmarks")
    parser.add_argument("model", type=Path, metavar="MODEL", help="a model folder or a run")
    add_run_options(parser)
    parser.add_argument("--tasks", nargs="+", metavar="TASK", help="only these tasks of the benchmark")
    arguments, overrides = parser.parse_known_args()
    check_run_options(arguments)
    return arguments, overrides


def main() -> None:
    """Run the command line."""
    arguments, overrides = parse_arguments()
    benchmark = read_benchmark(arguments.benchmark)
    for name in arguments.tasks or ():
        known = ", ".join(benchmark.tasks)
        require(name in benchmark.tasks, "--tasks", f"{name} is not in it: {known}{similar(name, benchmark.tasks)}")
    wanted = [name for name in benchmark.tasks if name in (arguments.tasks or benchmark.tasks)]
    there = [name for name in available_tasks(benchmark, arguments.data) if name in wanted]
    missing = [name for name in wanted if name not in there]
    if not there:
        raise InputError(f"{arguments.data}: has the files of none of {', '.join(wanted)}; see ernie-gram tasks")
    if missing:
        print(f"no files in {arguments.data}: {', '.join(missing)}", flush=True)
    seeds, overrides = range(1, arguments.seeds + 1), [*overrides, f"--paths.data={arguments.data}"]
    runs = [
        run
        for name in there
        for run in plan(name, arguments.model, arguments.output, {}, seeds, overrides, prefix=name)
    ]
    check_runs(runs, arguments.processes)
    with lock_output(arguments.output, "--output"):
        stop_at_sigterm()
        finished, failed = train(runs, arguments.jobs, arguments.processes)
        text = table(benchmark, finished)
        with atomic_file(arguments.output / "table.md") as partial:
            partial.write_text(text, encoding="utf-8")
    print(f"\n{text}\n{arguments.output / 'table.md'}")
    raise_failures(failed)
