"""Fine-tune a model on all tasks of a benchmark whose files are in a folder, and print one table.

    ernie-gram benchmark english MODEL --data FOLDER --output output/english --seeds 3

The benchmarks are the files in conf/benchmarks; the settings of each task are those of conf/tasks. Other options are
passed to every run. After an interruption, the same command resumes; it does not repeat finished runs. The table has
the finished runs of all tasks, also with --tasks.
"""

from __future__ import annotations

from reader.commands import run_command

if __name__ == "__main__":
    run_command("tasks.benchmark")

from pathlib import Path

from ernie_gram.config.checks import require
from ernie_gram.experiments.experiment import check_earlier, experiment_parser, parse_experiment, run_experiment
from reader.errors import InputError, similar
from tasks.reading.data_option import add_data_option
from tasks.sweeps.benchmarks import BENCHMARKS, available_tasks, read_benchmark, table
from tasks.sweeps.runs import check_runs, plan


def main() -> None:
    """Run the command line."""
    parser = experiment_parser(__doc__)
    add_data_option(parser, is_required=True)
    names = ", ".join(sorted(path.stem for path in BENCHMARKS.glob("*.yaml")))
    parser.add_argument("benchmark", metavar="NAME", help=f"{names}, or a YAML file like those in conf/benchmarks")
    parser.add_argument("model", type=Path, metavar="MODEL", help="a model folder or a run")
    parser.add_argument("--tasks", nargs="+", metavar="TASK", help="train only these tasks of the benchmark")
    options, overrides = parse_experiment(parser)
    require(not any(option.startswith("--paths.data") for option in overrides), "--paths.data", "give --data")
    benchmark = read_benchmark(options.benchmark)
    for name in options.tasks or ():
        known = ", ".join(benchmark.tasks)
        reason = f"{name} is not one of its tasks: {known}{similar(name, benchmark.tasks)}"
        require(name in benchmark.tasks, "--tasks", reason)
    wanted = [name for name in benchmark.tasks if name in (options.tasks or benchmark.tasks)]
    there = available_tasks(benchmark, options.data)
    missing = [name for name in wanted if name not in there]
    if missing == wanted:
        raise InputError(f"{options.data}: has no files of {', '.join(wanted)}; see ernie-gram tasks")
    if missing:
        print(f"no files in {options.data}: {', '.join(missing)}", flush=True)
    seeds, overrides = range(1, options.seeds + 1), [*overrides, f"--paths.data={options.data}"]
    planned = [
        run for name in there for run in plan(name, options.model, options.output, {}, seeds, overrides, prefix=name)
    ]
    check_earlier(planned, options.output)
    # A task that is not to be trained keeps its rows in the table.
    runs = [run for run in planned if run.config.task in wanted or run.result() is not None]
    check_runs(runs, options.processes)
    run_experiment(runs, options, lambda finished, _: table(benchmark, finished))
