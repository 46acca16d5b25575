"""Benchmarks: tasks that are reported together, beside published scores; a YAML file each, as in conf/benchmarks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ernie_gram.config.checks import require
from reader.errors import located, similar
from reader.system.installation import CONF, is_settings_file
from reader.system.untrusted_text import read_yaml
from tasks.kinds.task import TRAIN
from tasks.reading.official_files import available_splits
from tasks.registry import task_named

BENCHMARKS = CONF / "benchmarks"
# `reported`: published scores, each with `name` of the model, `source`, and `scores` {task: {SPLIT.METRIC: score}}.
KEYS = ("title", "tasks", "reported")


def read_benchmark(name: str) -> dict[str, Any] | None:
    """Return the benchmark in a file of conf/benchmarks, or in a YAML file with `tasks`; None for another name.

    Raises InputError that names the file and the key.
    """
    path = Path(name) if is_settings_file(name) else BENCHMARKS / f"{name}.yaml"
    tree = read_yaml(path) if path.is_file() else {}
    if "tasks" not in tree:
        return None
    with located(path):
        for key in tree:
            require(key in KEYS, key, f"is not a key of a benchmark ({', '.join(KEYS)}){similar(key, KEYS)}")
        is_list = isinstance(tree["tasks"], list) and all(isinstance(task, str) for task in tree["tasks"])
        require(is_list, "tasks", "expected a list of names of tasks")
        for column in tree.setdefault("reported", []):
            is_column = isinstance(column, dict) and column.keys() >= {"name", "source", "scores"}
            require(
                is_column, "reported", "expected columns with name, source and scores {task: {split.metric: value}}"
            )
        for task in tree["tasks"]:
            task_named(task)
    return tree


def has_files(name: str, data: Path) -> bool:
    """Return whether a folder has the training files of a task, and those of at least one other labelled split."""
    task = task_named(name)
    splits = available_splits(task, data)
    return TRAIN in splits and bool({*splits} & {*task.evaluation_splits})
