"""Benchmarks: tasks that are reported together, and the table of their results beside published scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median
from typing import Any

from ernie_gram.config.checks import require
from ernie_gram.experiments.planned_run import Result
from ernie_gram.experiments.tables import Finished, markdown_table, spread_of
from reader.errors import InputError, located, similar
from reader.system.installation import CONF, named_settings
from reader.system.untrusted_text import read_yaml
from tasks.kinds.task import TRAIN
from tasks.metrics.catalog import METRICS
from tasks.reading.official_files import available_splits
from tasks.registry import task_named
from tasks.sweeps.runs import scores_of

BENCHMARKS = CONF / "benchmarks"
KEYS = ("title", "tasks", "reported")
MISSING = "-"


@dataclass(frozen=True)
class Reported:
    """Published scores, for comparison.

    Attributes:
        name: the name of the model, the head of the column; source: where the scores are published.
        scores: by task and SPLIT.METRIC, in the unit of the publication, usually percent.
    """

    name: str
    source: str
    scores: Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class Benchmark:
    """Tasks that are reported together.

    Attributes:
        title: for the table; tasks: names of the registry; reported: columns of published scores.
    """

    title: str
    tasks: tuple[str, ...]
    reported: tuple[Reported, ...] = ()


def read_benchmark(name: str) -> Benchmark:
    """Return a benchmark: the name of a file in conf/benchmarks, or the path of a YAML file.

    Raises InputError that names the file and the key.
    """
    path = named_settings(name, BENCHMARKS, "benchmark")
    tree = read_yaml(path)
    with located(path):
        for key in tree:
            require(key in KEYS, key, f"is not a key of a benchmark ({', '.join(KEYS)}){similar(key, KEYS)}")
        tasks = tree.get("tasks")
        if not isinstance(tasks, list) or not tasks or not all(isinstance(task, str) for task in tasks):
            raise InputError("tasks: expected a list of names of tasks")
        for task in tasks:
            task_named(task)
            require(tasks.count(task) == 1, "tasks", f"{task} is there twice")
        try:
            columns = tuple(_reported(value) for value in tree.get("reported", []))
        except (TypeError, KeyError, AttributeError) as error:
            message = "expected a list of columns, each with name, source and scores {task: {split.metric: value}}"
            raise InputError(f"reported: {message}") from error
    return Benchmark(str(tree.get("title", name)), tuple(tasks), columns)


def _reported(value: dict[str, Any]) -> Reported:
    """Return a column of published scores; raises InputError for an unknown metric, and if a score is no number."""
    for name, scores in value["scores"].items():
        task = task_named(name)
        metrics = METRICS[task.metric].reported_scores
        known = [f"{split}.{metric}" for split in task.evaluation_splits for metric in metrics]
        for metric, score in scores.items():
            where = f"reported.scores.{name}"
            require(metric in known, where, f"{metric} is none of {', '.join(known)}")
            require(type(score) in (int, float), where, f"{metric}: expected a number, found {score!r}")
    return Reported(str(value["name"]), str(value["source"]), value["scores"])


def available_tasks(benchmark: Benchmark, data: Path) -> list[str]:
    """Return the tasks whose training files, and those of at least one other labelled split, are in a folder."""
    found = []
    for name in benchmark.tasks:
        task = task_named(name)
        splits = available_splits(task, data)
        if TRAIN in splits and {*splits} & {*task.evaluation_splits}:
            found.append(name)
    return found


def table(benchmark: Benchmark, finished: Finished) -> str:
    """Return a Markdown table with a row for each metric of each task.

    A row has the median and the range over the seeds, or "-" without a finished run, and the published scores.
    """
    by_task: dict[str, list[Result]] = {}
    for run, result in finished:
        by_task.setdefault(run.config.task, []).append(result)
    head = ["task", "split", "metric", "seeds", "median", "worst - best", *(each.name for each in benchmark.reported)]
    rows = [cells for name in benchmark.tasks for cells in _rows(benchmark, name, by_task.get(name, []))]
    lines = [f"{benchmark.title}; fractions are in percent", "", *markdown_table(head, rows)]
    if len(by_task) > 1:
        average = mean(median(result["score"] for result in results) for results in by_task.values())
        lines += ["", f"Mean of the scores of {len(by_task)} of {len(benchmark.tasks)} tasks: {average:.2f}."]
    lines += [f"{reported.name}: {reported.source}." for reported in benchmark.reported]
    return "\n".join(lines) + "\n"


def _rows(benchmark: Benchmark, name: str, results: list[Result]) -> list[list[str]]:
    """Return the cells of each metric of a task: those of its runs, and published ones."""
    task = task_named(name)
    metric = METRICS[task.metric]
    values = [scores_of(result) for result in results]
    published = [reported.scores.get(name, {}) for reported in benchmark.reported]
    keys = dict.fromkeys(key for scores in (*values, *published) for key in scores)
    rows = []
    for key in keys or [f"{task.evaluation_splits[0]}.{metric.main}"]:
        split, _, score_name = key.partition(".")
        own = [scores[key] for scores in values if key in scores]
        cells = [task.title, split, score_name, str(len(own)), f"{median(own):.2f}" if own else MISSING]
        spread = spread_of(own, metric.direction) if len(own) > 1 else None
        cells.append(f"{spread.worst:.2f} - {spread.best:.2f}" if spread else MISSING)
        rows.append([*cells, *(f"{scores[key]:g}" if key in scores else MISSING for scores in published)])
    return rows
