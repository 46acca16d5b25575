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
from pathlib import Path

from ernie_gram.config.checks import require
from ernie_gram.experiments.experiment import check_earlier, experiment_parser, parse_experiment, run_experiment
from ernie_gram.experiments.tables import Finished, Spread, by_setting, markdown_table, spread_of
from ernie_gram.plot import new_figure, save_figure
from reader.errors import counted
from tasks.metrics.catalog import METRICS
from tasks.metrics.metric import Metric
from tasks.reading.data_option import FILES, VARIABLE, data_folder
from tasks.registry.task_file import find_task
from tasks.sweeps.benchmarks import MISSING
from tasks.sweeps.runs import Grid, check_runs, config_of, plan, read_grid, scores_of

# Short options for the settings that sweeps vary most often.
SHORT = {
    "learning_rates": "optimizer.learning_rate",
    "batch_sizes": "optimizer.batch_size",
    "epochs": "optimizer.epochs",
}


def parse_arguments() -> tuple[argparse.Namespace, list[str]]:
    """Return the parsed options and those for every run; raises InputError."""
    parser = experiment_parser(__doc__)
    default = f"default: `paths.data` of a file of settings, else {VARIABLE}"
    parser.add_argument("--data", "--paths.data", metavar="FOLDER", help=f"{FILES} ({default})")
    parser.add_argument(
        "task",
        metavar="TASK",
        help="a task that `ernie-gram tasks` lists, or the .yaml file of a custom task or of settings",
    )
    parser.add_argument("model", type=Path, metavar="MODEL", help="a model folder or a run")
    parser.add_argument(
        "--grid", metavar="NAME", help="values for the task: paper, upstream, or a file like those in conf/grids"
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
    return parse_experiment(parser)


def grid_of(options: argparse.Namespace) -> Grid:
    """Return the values of all settings that vary; options override those of --grid. Raises InputError."""
    given = {key: getattr(options, name) for name, key in SHORT.items() if getattr(options, name) is not None}
    for key, *values in options.vary:
        require(bool(values), "--vary", f"{key} has no values")
        require(key not in given, "--vary", f"{key} has its values already; give all values of a setting together")
        given[key] = values
    return {**(read_grid(options.grid, options.task) if options.grid else {}), **given}


def metric_of(finished: Finished) -> tuple[Metric, str]:
    """Return the metric of a sweep, and the name of the score that chooses the best evaluation."""
    config = finished[0][0].config
    metric = METRICS[find_task(config.task).metric]
    return metric, config.evaluation.metric or metric.main


def markdown(finished: Finished) -> str:
    """Return a Markdown table with a row for each combination, and a summary.

    A row has the median, the best and the worst score over the seeds, and the medians of the scores that papers report,
    over the runs that have them. The combination with the best median is in bold.
    """
    (first, _), (metric, chosen) = finished[0], metric_of(finished)
    groups = by_setting(finished)
    spreads = {
        varied: spread_of([result["score"] for result in results], metric.direction)
        for varied, results in groups.items()
    }
    form = ".4g" if metric.unit == "none" else ".2f"
    better = max if metric.direction == "max" else min
    best = better(spreads, key=lambda varied: spreads[varied].median)
    names = list(dict.fromkeys(name for _, result in finished for name in scores_of(result)))
    rows = []
    for varied, results in groups.items():
        spread = spreads[varied]
        median = f"**{spread.median:{form}}**" if varied == best else f"{spread.median:{form}}"
        others = [f"{value:{form}}" for value in (spread.best, spread.worst)]
        others.append(f"{spread.deviation:{form}}" if spread.seeds > 1 else MISSING)
        found = [[result[name] for result in results if name in result] for name in names]
        medians = [f"{spread_of(values).median:{form}}" if values else MISSING for values in found]
        rows.append([*(value for _, value in varied), str(spread.seeds), median, *others, *medians])
    head = [*first.varied, "seeds", "median", "best", "worst", "deviation", *(f"median {name}" for name in names)]
    splits = ", ".join(dict.fromkeys(name.partition(".")[0] for name in names))
    title = (
        f"{find_task(first.config.task).name}: {counted(len(finished), 'run')}. The score is {chosen} on the first of "
        f"the splits {splits}{'' if metric.unit == 'none' else ', in percent'}."
    )
    best_run = better(finished, key=lambda pair: pair[1]["score"])[0].name
    return "\n".join([title, "", *markdown_table(head, rows), "", _summary(best, spreads[best], best_run, form)]) + "\n"


def _summary(varied: tuple[tuple[str, str], ...], spread: Spread, best_run: str, form: str) -> str:
    """Return the best combination, the effect of the seed, and the best run."""
    shown = ", ".join(f"{key} {value}" for key, value in varied)
    deviation = f" (deviation {spread.deviation:{form}})" if spread.seeds > 1 else ""
    return (
        f"Best median: {spread.median:{form}} over {counted(spread.seeds, 'seed')}{deviation}"
        f"{f' with {shown}' if shown else ''}. Best run: {best_run}."
    )


def draw(finished: Finished, target: Path) -> None:
    """Plot the score of every run, one column for each combination, with a line at its median."""
    metric, chosen = metric_of(finished)
    groups = by_setting(finished)
    figure, [axes] = new_figure(1)
    for column, results in enumerate(groups.values()):
        scores = [result["score"] for result in results]
        axes.plot([column] * len(scores), scores, "o", markersize=4, alpha=0.6, color="C0")
        median = spread_of(scores).median
        axes.plot([column - 0.3, column + 0.3], [median, median], color="C1", label=None if column else "median")
    labels = ["\n".join(f"{key.rpartition('.')[2]} {value}" for key, value in varied) for varied in groups]
    axes.set_xticks(range(len(groups)), labels, rotation=90 if len(groups) > 4 else 0, fontsize=7)
    unit = "" if metric.unit == "none" else " (percent)"
    axes.set(title=find_task(finished[0][0].config.task).name, ylabel=f"{chosen}{unit}")
    save_figure(figure, [axes], target)


def report(finished: Finished, output: Path) -> str:
    """Return the table, and write scores.png."""
    draw(finished, output / "scores.png")
    return markdown(finished)


def main() -> None:
    """Run the command line."""
    options, overrides = parse_arguments()
    seeds = range(1, options.seeds + 1)
    folder = options.data or config_of(options.task, ()).paths.data or data_folder()
    require(bool(folder), "--data", f"must be given, or {VARIABLE}: the folder with the files of the task")
    overrides = [*overrides, f"--paths.data={folder}"]
    runs = plan(options.task, options.model, options.output, grid_of(options), seeds, overrides)
    check_earlier(runs, options.output)
    check_runs(runs, options.processes)
    run_experiment(runs, options, report)
