"""Run the ablation: train the rungs of conf/ablation on the same data, evaluate them, and compare them in a table.

    ernie-gram ablation --output output/ablation --rungs contiguous explicit full --jobs 2

Other options are passed to every rung, e.g. --trainer.max_steps 2000. After an interruption, the same command resumes.
"""

from __future__ import annotations

from reader.commands import run_command

if __name__ == "__main__":
    run_command("ernie_gram.run_ablation")

import argparse
import csv
import time
from pathlib import Path
from statistics import mean, median

from ernie_gram.plot import curve, new_figure, save_figure, set_step_axis
from ernie_gram.pretraining.ablation_plan import RUNGS, AblationRun, check, plan
from ernie_gram.run.many_runs import CONSOLE, Command, last_error, launcher, run_all, stop_at_sigterm
from ernie_gram.run.run_folder import check_output, lock_output
from ernie_gram.run.run_log import last_evaluation, read_log
from reader.errors import InputError, OneLineParser
from reader.plurals import counted
from reader.system.atomic_files import atomic_file

Row = dict[str, float | int | str]
COLUMNS = ("rung", "seed", "steps", "ngram_perplexity", "perplexity", "accuracy", "seconds_per_step")


def finish(job: AblationRun, status: int) -> str:
    """Return a summary of a finished run; raises InputError if it failed."""
    last = last_evaluation(job.output)
    if status or last is None or last["step"] != job.config.trainer.max_steps:
        raise InputError(f"{job.output / CONSOLE}: the run failed: {last_error(job.output)}")
    return f"n-gram perplexity {last.get('ngram_perplexity', float('nan')):,.0f}"


def train(jobs: list[AblationRun], parallel: int, processes: int) -> None:
    """Train the unfinished runs, `parallel` at a time; raises InputError as soon as one fails."""
    unfinished = {job.name: job for job in jobs if not job.done}
    print(
        f"{counted(len(jobs), 'run')}, {len(jobs) - len(unfinished)} finished before; {parallel} at a time", flush=True
    )
    began, before = time.monotonic(), sum(job.progress for job in jobs)

    def ended(command: Command, status: int) -> None:
        result = finish(unfinished[command.name], status)
        progress = sum(job.progress for job in jobs)
        rate = (progress - before) / (time.monotonic() - began)
        left = f"; about {(len(jobs) - progress) / rate / 60:.0f} min left" if rate else ""
        print(f"done  {command.name}: {result}{left}", flush=True)

    program = launcher("ernie_gram.run_pretrain")
    commands = [Command(job.name, job.output, (*program, *job.options)) for job in unfinished.values()]
    run_all(commands, parallel, processes, ended)


def table_rows(jobs: list[AblationRun]) -> list[Row]:
    """Return one row of the table for every finished run, from its log."""
    rows = []
    for job in jobs:
        last = last_evaluation(job.output)
        assert last is not None  # the run is finished
        rates = [record["sequences_per_second"] for record in read_log(job.output) if record["kind"] == "train"]
        seconds = job.config.data.batch_size / median(rates)
        values = {"rung": job.rung, "seed": job.seed, "steps": last["step"], "seconds_per_step": seconds}
        rows.append(
            values | {key: last.get(key, float("nan")) for key in ("ngram_perplexity", "perplexity", "accuracy")}
        )
    return rows


def markdown(rows: list[Row]) -> str:
    """Return the rows as a Markdown table: the mean of each rung over its seeds, with minimum and maximum."""
    seeds = sorted({int(row["seed"]) for row in rows})
    by_rung = {rung: mine for rung in RUNGS if (mine := [row for row in rows if row["rung"] == rung])}
    reference = "explicit" if "explicit" in by_rung else "the mean"
    usual = mean(float(row["seconds_per_step"]) for row in by_rung.get("explicit", rows))
    lines = [
        f"{rows[0]['steps']} steps each, seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds))}.",
        "",
        f"| rung | what | n-gram perplexity | unit perplexity | accuracy | time of a step (to {reference}) |",
        "|---|---|---|---|---|---|",
    ]
    for rung, mine in by_rung.items():
        cells = [rung, RUNGS[rung]]
        for key, form in (("ngram_perplexity", ",.0f"), ("perplexity", ",.0f"), ("accuracy", ".1%")):
            values = [float(row[key]) for row in mine]
            spread = f" ({min(values):{form}} - {max(values):{form}})" if len(values) > 1 else ""
            cells.append(f"{mean(values):{form}}{spread}")
        seconds = mean(float(row["seconds_per_step"]) for row in mine)
        cells.append(f"{seconds:.2f} s ({seconds / usual:.2f} x)")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def draw(jobs: list[AblationRun], target: Path) -> None:
    """Plot the perplexities over masked n-grams and over all masked units against steps, one line per run."""
    figure, panels = new_figure(2)
    colours: dict[str, str] = {}
    for job in sorted(jobs, key=lambda job: list(RUNGS).index(job.rung)):
        label = None if job.rung in colours else f"{job.rung}: {RUNGS[job.rung]}"
        for axes, key in zip(panels, ("ngram_perplexity", "perplexity"), strict=True):
            steps, values = curve(read_log(job.output), "eval", key)
            (line,) = axes.plot(steps, values, "o-", markersize=3, color=colours.get(job.rung), label=label)
            colours[job.rung] = line.get_color()
    for axes, what in zip(panels, ("masked n-grams", "all masked units"), strict=True):
        set_step_axis(axes, f"Held-out perplexity of {what}", "perplexity", "log")
    save_figure(figure, panels, target)


def main() -> None:
    """Run the command line."""
    parser = OneLineParser(description=__doc__, allow_abbrev=False)
    parser.add_argument(
        "--output", type=Path, required=True, metavar="DIR", help="folder for the runs, the table and the figure"
    )
    parser.add_argument(
        "--rungs",
        nargs="+",
        choices=list(RUNGS),
        default=list(RUNGS),
        metavar="RUNG",
        help="rungs to train: " + ", ".join(RUNGS) + " (default: all)",
    )
    parser.add_argument("--seeds", type=int, default=1, metavar="N", help="number of seeds: 1 to N (%(default)s)")
    parser.add_argument("--jobs", type=int, default=1, help="number of runs at a time (%(default)s)")
    parser.add_argument("--processes", type=int, default=1, help="processes per run, as NPROC (%(default)s)")
    parser.add_argument("--token_corpus", metavar="DIR", help="corpus of the rung `token`, made without a lexicon")
    arguments, overrides = parser.parse_known_args()
    for name in ("seeds", "jobs", "processes"):
        if getattr(arguments, name) < 1:
            raise InputError(f"--{name}: must be at least 1")
    jobs = plan(arguments.output, arguments.rungs, range(1, arguments.seeds + 1), arguments.token_corpus, overrides)
    check_output(arguments.output, option="--output")
    check(jobs, arguments.processes)
    with lock_output(arguments.output, "--output"):
        run(arguments, jobs)


def run(arguments: argparse.Namespace, jobs: list[AblationRun]) -> None:
    """Train the runs in the locked folder --output, and write the table and the figure; raises InputError."""
    stop_at_sigterm()
    train(jobs, arguments.jobs, arguments.processes)
    rows = table_rows(jobs)
    with atomic_file(arguments.output / "table.csv") as partial, partial.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)
    with atomic_file(arguments.output / "table.md") as partial:
        partial.write_text(markdown(rows))
    draw(jobs, arguments.output / "curves.png")
    print(f"\n{markdown(rows)}\n{arguments.output}: table.md, table.csv, curves.png")
