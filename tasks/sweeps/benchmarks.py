"""Benchmarks: tasks that are reported together, and the table of their results beside published figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

from ernie_gram.config.checks import require
from ernie_gram.config.loading import read_yaml
from reader.errors import InputError
from reader.system.installation import CONF, settings_file
from tasks.kinds.task import TRAIN
from tasks.layouts.columns import similar
from tasks.metrics.catalog import METRICS
from tasks.reading.official_files import available_splits
from tasks.registry import task_named
from tasks.sweeps.results import Result, Spread, figures_of, reported_figures, reported_value, spread_of
from tasks.sweeps.runs import Finished

BENCHMARKS = CONF / "benchmarks"
KEYS = ("title", "tasks", "reported")
MISSING = "-"


@dataclass(frozen=True)
class Reported:
    """Published figures that stand beside one's own.

    Attributes:
        name: of the model, the head of the column; source: where the figures are published.
        figures: by task and SPLIT.FIGURE, in the unit of the publication, which is mostly percent.
    """

    name: str
    source: str
    figures: Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class Benchmark:
    """Tasks that are reported together.

    Attributes:
        title: for the table; tasks: names of the registry; reported: columns of published figures.
    """

    title: str
    tasks: tuple[str, ...]
    reported: tuple[Reported, ...] = ()


def read_benchmark(name: str) -> Benchmark:
    """Return a benchmark: the name of a file in conf/benchmarks, or the path of a YAML file.

    Raises InputError that names the file and the key.
    """
    path = settings_file(Path(name)) if name.endswith((".yaml", ".yml")) else BENCHMARKS / f"{name}.yaml"
    known = sorted(each.stem for each in BENCHMARKS.glob("*.yaml"))
    if not path.is_file():
        raise InputError(f"{path}: no such benchmark; the benchmarks are {', '.join(known)}{similar(name, known)}")
    tree = read_yaml(path)
    try:
        for key in tree:
            require(key in KEYS, key, f"is not a key of a benchmark ({', '.join(KEYS)}){similar(key, KEYS)}")
        tasks = tree.get("tasks")
        if not isinstance(tasks, list) or not tasks:
            raise InputError("tasks: expected a list of tasks")
        for task in tasks:
            task_named(task)
        columns = tuple(_reported(value) for value in tree.get("reported", []))
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    except (TypeError, KeyError, AttributeError) as error:
        message = "expected a list of columns, each with name, source and figures {task: {split.figure: value}}"
        raise InputError(f"{path}: reported: {message}") from error
    return Benchmark(str(tree.get("title", name)), tuple(tasks), columns)


def _reported(value: dict[str, Any]) -> Reported:
    """Return a column of published figures; raises InputError for a figure that the task does not have."""
    for name, figures in value["figures"].items():
        task = task_named(name)
        known = [f"{split}.{figure}" for split in task.evaluation_splits for figure in _figures(name)]
        for figure in figures:
            require(figure in known, f"reported.figures.{name}", f"{figure} is none of {', '.join(known)}")
    return Reported(str(value["name"]), str(value["source"]), value["figures"])


def _figures(task: str) -> tuple[str, ...]:
    return reported_figures(METRICS[task_named(task).metric])


def available_tasks(benchmark: Benchmark, data: Path) -> list[str]:
    """Return the tasks whose training file and at least one labelled other file are in a folder."""
    found = []
    for name in benchmark.tasks:
        task = task_named(name)
        splits = available_splits(task, data)
        if TRAIN in splits and {*splits} & {*task.evaluation_splits}:
            found.append(name)
    return found


def table(benchmark: Benchmark, finished: Finished) -> str:
    """Return a Markdown table with a row for each figure of each task: median and spread over seeds, and the published
    figures. Tasks without a finished run have no figures."""
    by_task: dict[str, list[Result]] = {}
    for run, result in finished:
        by_task.setdefault(run.config.task, []).append(result)
    columns = [reported.name for reported in benchmark.reported]
    head = ["task", "split", "figure", "seeds", "median", "worst - best", *columns]
    lines = [f"{benchmark.title}; fractions are in percent", "", f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    for name in benchmark.tasks:
        lines += [f"| {' | '.join(cells)} |" for cells in _rows(benchmark, name, by_task.get(name, []))]
    if len(by_task) > 1:
        average = mean(_score(name, results).median for name, results in by_task.items())
        lines += ["", f"Mean of the scores of {len(by_task)} of {len(benchmark.tasks)} tasks: {average:.2f}."]
    lines += [f"{reported.name}: {reported.source}." for reported in benchmark.reported]
    return "\n".join(lines) + "\n"


def _rows(benchmark: Benchmark, name: str, results: list[Result]) -> list[list[str]]:
    """Return the cells of each figure of a task: those of its runs, and published ones."""
    task = task_named(name)
    metric = METRICS[task.metric]
    values = [figures_of(result) for result in results]
    published = [reported.figures.get(name, {}) for reported in benchmark.reported]
    keys = dict.fromkeys(key for figures in (*values, *published) for key in figures)
    rows = []
    for key in keys or [f"{task.evaluation_splits[0]}.{metric.main}"]:
        split, _, figure = key.partition(".")
        own = [figures[key] for figures in values if key in figures]
        cells = [task.title, split, figure, str(len(own))]
        cells += _spread_cells(spread_of(own, metric)) if own else [MISSING, MISSING]
        rows.append([*cells, *(f"{figures[key]:g}" if key in figures else MISSING for figures in published)])
    return rows


def _spread_cells(spread: Spread) -> list[str]:
    between = f"{spread.worst:.2f} - {spread.best:.2f}" if spread.seeds > 1 else MISSING
    return [f"{spread.median:.2f}", between]


def _score(name: str, results: list[Result]) -> Spread:
    metric = METRICS[task_named(name).metric]
    return spread_of([reported_value(metric, result["score"]) for result in results], metric)
