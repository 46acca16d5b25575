"""Fine-tune a model with every combination of some settings and seeds, and compare them in a table.

    ernie-gram sweep mrpc MODEL --data glue --output output/mrpc_sweep --grid paper --seeds 10 --jobs 2

Other options are passed to every run, e.g. --input.max_seq_len 64. After an interruption, the same command resumes; it
does not repeat finished runs.
"""

from __future__ import annotations

from reader.commands import run_command

if __name__ == "__main__":
    run_command("tasks.sweep")

import argparse
import csv
from pathlib import Path

from ernie_gram.config.checks import require
from ernie_gram.run.many_runs import stop_at_sigterm
from ernie_gram.run.run_folder import lock_output
from reader.errors import OneLineParser
from reader.system.atomic_files import atomic_file
from tasks.sweeps.plan import Grid, plan, read_grid
from tasks.sweeps.report import csv_rows, draw, markdown
from tasks.sweeps.runs import Finished, add_run_options, check_run_options, check_runs, raise_failures, train

# Options for settings that sweeps mostly vary.
SHORT = {
    "learning_rates": "optimizer.learning_rate",
    "batch_sizes": "optimizer.batch_size",
    "epochs": "optimizer.epochs",
}


def parse_arguments() -> tuple[argparse.Namespace, list[str]]:
    """Return the parsed options and those for every run; raises InputError."""
    parser = OneLineParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "task", metavar="TASK", help="a task that `ernie-gram tasks` lists, or the .yaml file of one's own"
    )
    parser.add_argument("model", type=Path, metavar="MODEL", help="a model folder or a run")
    add_run_options(parser)
    parser.add_argument(
        "--grid", metavar="NAME", help="values for the task: paper, upstream, or a file like conf/grids"
    )
    for name, key in SHORT.items():
        parser.add_argument(f"--{name}", nargs="+", metavar="X", help=f"values of {key}")
    parser.add_argument(
        "--vary",
        nargs="+",
        action="append",
        default=[],
        metavar="KEY X",
        help="a setting and its values, e.g. --vary head.dropout 0.1 0.2; may be repeated",
    )
    arguments, overrides = parser.parse_known_args()
    check_run_options(arguments)
    return arguments, overrides


def grid_of(arguments: argparse.Namespace) -> Grid:
    """Return the values of all settings that vary; options override those of --grid. Raises InputError."""
    grid = dict(read_grid(arguments.grid, arguments.task)) if arguments.grid else {}
    for name, key in SHORT.items():
        if getattr(arguments, name) is not None:
            grid[key] = getattr(arguments, name)
    for key, *values in arguments.vary:
        require(bool(values), "--vary", f"{key} has no values")
        grid[key] = values
    return grid


def write_tables(finished: Finished, output: Path) -> None:
    """Write table.csv, table.md and scores.png."""
    rows = csv_rows(finished)
    names = list(dict.fromkeys(name for row in rows for name in row))
    with atomic_file(output / "table.csv") as partial, partial.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(rows)
    with atomic_file(output / "table.md") as partial:
        partial.write_text(markdown(finished), encoding="utf-8")
    draw(finished, output / "scores.png")


def main() -> None:
    """Run the command line."""
    arguments, overrides = parse_arguments()
    seeds = range(1, arguments.seeds + 1)
    overrides = [*overrides, f"--paths.data={arguments.data}"]
    runs = plan(arguments.task, arguments.model, arguments.output, grid_of(arguments), seeds, overrides)
    check_runs(runs, arguments.processes)
    with lock_output(arguments.output, "--output"):
        stop_at_sigterm()
        finished, failed = train(runs, arguments.jobs, arguments.processes)
        if finished:
            write_tables(finished, arguments.output)
            print(f"\n{markdown(finished)}\n{arguments.output}: table.md, table.csv, scores.png")
    raise_failures(failed)
