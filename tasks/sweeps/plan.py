"""The plan of a sweep: its pre-trainings, and every fine-tuning of every model on every task.

A benchmark stands for tasks that are reported together, beside published scores; it is a file of conf/benchmarks.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ernie_gram.config import require
from reader.errors import InputError
from reader.system.installation import CONF, is_settings_file
from reader.system.untrusted_text import read_yaml
from tasks.files.official import VARIABLE, available_splits, data_folder
from tasks.kinds.task import TRAIN
from tasks.registry import find_task
from tasks.registry.task_file import settings_of
from tasks.sweeps.runs import FINETUNE, PRETRAIN, PlannedRun, config_of, planned_runs, read_grid
from tasks.sweeps.table import published_columns

PREFIX = f"{PRETRAIN}."
BENCHMARKS = CONF / "benchmarks"


@dataclass
class Sweep:
    """The planned runs of a sweep.

    Attributes:
        pretrainings, finetunings: the runs.
        tasks: names of the tasks in the table, also of those of a benchmark without files.
        reported: columns of published scores: those of the benchmarks, and the paper's.
    """

    pretrainings: list[PlannedRun] = field(default_factory=list)
    finetunings: list[PlannedRun] = field(default_factory=list)
    tasks: list[str] = field(default_factory=list)
    reported: list[dict[str, Any]] = field(default_factory=list)

    @property
    def runs(self) -> list[PlannedRun]:
        """All runs."""
        return [*self.pretrainings, *self.finetunings]

    def untrained(self) -> set[str]:
        """Return the folders of the pre-trainings that are not finished."""
        return {str(run.folder) for run in self.pretrainings if run.record() is None}


def plan_sweep(options: argparse.Namespace, names: Sequence[str], overrides: Sequence[str]) -> Sweep:
    """Return the plan for the options of the command.

    Args:
        names: tasks and benchmarks, then models; the first name that is no task, benchmark or YAML file is a model.
        overrides: options for every fine-tuning; those that begin with `--pretrain.`, for every pre-training.

    Raises InputError for what is unknown, invalid or missing.
    """
    first = next((i for i, name in enumerate(names) if i and not _is_task(name)), len(names))
    tasks, models = names[:first], names[first:]
    if options.pretrain:
        require(not models, "MODEL", f"{' '.join(models)}: leave it out with --pretrain")
    else:
        require(bool(models), "TASK and MODEL", "must be given (see ernie-gram sweep --help)")
    inner, outer = dict[str, list[str]](), dict[str, list[str]]()
    for key, *values in options.vary:
        of_command, name = inner if key.startswith(PREFIX) else outer, key.removeprefix(PREFIX)
        require(bool(values), "--vary", f"{key} has no values")
        require(name not in of_command, "--vary", f"{key}: give all values of a setting together")
        of_command[name] = values
    own = [f"--{each.removeprefix(f'--{PREFIX}')}" for each in overrides if each.startswith(f"--{PREFIX}")]
    rest = [each for each in overrides if not each.startswith(f"--{PREFIX}")]
    require(bool(options.pretrain) or not (inner or own), f"--{PRETRAIN}", "must be given: files of settings")
    sweep = Sweep()
    for seed in range(1, options.pretrain_seeds + 1):
        for file in options.pretrain:
            name, options_of_file = Path(file).stem, ("--config", file)
            for run in planned_runs(PRETRAIN, options_of_file, own, inner, options.output / name, {}, {"seed": seed}):
                of_run = {f"{PREFIX}{key}": value for key, value in run.varied.items()}
                sweep.pretrainings.append(replace(run, varied={PRETRAIN: name, **of_run}))
    # A model, what is varied in models, and the seeds of this one.
    starts: list[tuple[Path, Mapping[str, str], Mapping[str, int]]] = [
        *((Path(name), {"model": name} if len(models) > 1 else {}, {}) for name in models),
        *((run.folder, run.varied, {"pretrain_seed": run.seeds["seed"]}) for run in sweep.pretrainings),
    ]
    known = dict.fromkeys(each for name in tasks for each in _tasks_of(name, options.data or data_folder(), sweep))
    for seed in range(1, options.seeds + 1):
        for task in known:
            data = str(options.data or config_of(task).paths.data or data_folder() or "")
            require(bool(data), "--data", f"must be given, or {VARIABLE}: the folder with the files of the tasks")
            grid = {**(read_grid(options.grid, task) if options.grid else {}), **outer}
            folder = options.output / find_task(config_of(task).task).name
            for model, varied, seeds in starts:
                settings, paths, seeds = settings_of(task), {"model": str(model), "data": data}, {**seeds, "seed": seed}
                sweep.finetunings += planned_runs(FINETUNE, settings, rest, grid, folder, varied, seeds, **paths)
    sweep.reported += published_columns(sweep.tasks)
    planned = [run.name for run in sweep.runs]
    twice = next((name for i, name in enumerate(planned) if name in planned[:i]), "")
    require(not twice, "the grid", f"two runs would be called {twice}; is a value there twice?")
    return sweep


def _tasks_of(name: str, data: Path | None, sweep: Sweep) -> list[str]:
    """Return a task, or those of a benchmark whose files `data` has; all get a row in the table of the sweep."""
    benchmark = read_benchmark(name)
    if benchmark is None:
        sweep.tasks.append(find_task(config_of(name).task).name)
        return [name]
    tasks = {each: find_task(each) for each in benchmark["tasks"]}
    sweep.tasks += [task.name for task in tasks.values()]
    sweep.reported += benchmark.get("reported", [])
    if data is None:
        raise InputError(f"--data: must be given, or {VARIABLE}")
    found = {each: {*available_splits(task, data)} for each, task in tasks.items()}
    # A task needs the training files, and those of at least one other labelled split.
    there = [each for each in tasks if TRAIN in found[each] and found[each] & {*tasks[each].evaluation_splits}]
    lost = ", ".join(each for each in tasks if each not in there)
    if not there:
        raise InputError(f"{data}: has no files of {lost}; see ernie-gram tasks")
    if lost:
        print(f"no files in {data}: {lost}", flush=True)
    return there


def read_benchmark(name: str) -> dict[str, Any] | None:
    """Return the benchmark in a file of conf/benchmarks; None for another name.

    It has `title`, `tasks`, and `reported`: published scores, each with `name` of the model, `source`, and `scores`
    {task: {SPLIT.METRIC: score}}.
    """
    path = BENCHMARKS / f"{name}.yaml"
    return read_yaml(path) if path.is_file() else None


def _is_task(name: str) -> bool:
    return is_settings_file(name) or any(
        (CONF / folder / f"{name}.yaml").is_file() for folder in ("tasks", "benchmarks")
    )
