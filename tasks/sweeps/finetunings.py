"""The fine-tunings of a sweep: their plan, their results, and the checks before they start."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from ernie_gram.config.checks import require
from ernie_gram.config.loading import config_from_tree, load_config
from ernie_gram.distributed.device import check_device
from ernie_gram.formats.registry import read_model
from ernie_gram.run.run_folder import RESULT
from reader.errors import InputError, located, similar
from reader.system.installation import CONF, named_settings
from reader.system.untrusted_text import json_value, limited_text, read_yaml
from tasks.metrics.catalog import METRICS
from tasks.registry.task_file import find_task, settings_of
from tasks.sweeps.planned_run import ADVICE, Grid, PlannedRun, Record, combinations, folder_name
from tasks.training.config import FinetuneConfig
from tasks.training.prepare import MADE_FROM, check_settings, data_identity, model_identity, prepare

LAUNCHER = "tasks.finetune"
GRIDS = CONF / "grids"
NO_DEV_SPLIT = "the folder with the data has no labelled dev split, on which runs are compared"
# A model, what a sweep varies in models, and the seeds of this one.
Start = tuple[Path, Mapping[str, str], Mapping[str, int]]


def finished(folder: Path, _: Any = None) -> Record | None:
    """Return what result.json of a run has; scores that are fractions are given in percent.

    `result` has the chosen score, the scores that papers report as SPLIT.METRIC, the steps and the seconds. Raises
    InputError if the file is damaged.
    """
    path = folder / RESULT
    if not path.is_file():
        return None
    try:
        found = json_value(limited_text(path))
        config = config_from_tree(FinetuneConfig, found["settings"], str(path))
        metric, made_from = METRICS[found["metric"]["name"]], {**found[MADE_FROM]}
        factor = 100 if metric.unit == "fraction" else 1
        scores = {
            f"{split}.{name}": factor * values[name]
            for split, values in found["scores"].items()
            for name in metric.reported_scores
            if name in values
        }
        numbers = {"chosen_step": found["steps"]["chosen"], "steps": found["steps"]["total"]}
        result = {"score": factor * found["score"], **scores, **numbers, "seconds": sum(found["seconds"].values())}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path}: damaged, of an earlier version, or without a score: {error}; {ADVICE}") from error
    known = {"kind": "fine-tuning", "task": found["task"], "metric": found["metric"], "result": result}
    return {**known, "settings": {**config.identity(), **made_from}}


@cache
def config_of(task: str) -> FinetuneConfig:
    """Return the settings of a task: a name, or the YAML file of a custom task or of settings; raises InputError."""
    return load_config(FinetuneConfig, settings_of(task))[0]


def read_grid(name: str, task: str) -> Grid:
    """Return the grid of a task from a file of grids: the name of a file in conf/grids, or a path.

    The keys of the file are names of tasks; a custom task has the name that its YAML file gives it.

    Raises InputError if there is no such file, or if it has no grid for the task.
    """
    path = named_settings(name, GRIDS, "grid")
    grids, key = read_yaml(path), find_task(config_of(task).task).name
    if key not in grids:
        options = "give the values with --learning_rates, --batch_sizes, --epochs or --vary"
        raise InputError(f"{path}: has no grid for {key}{similar(key, grids)}; {options}")
    grid = grids[key]
    if not isinstance(grid, dict) or not all(isinstance(values, list) and values for values in grid.values()):
        raise InputError(f"{path}: {key}: expected `section.key: [value, ...]`")
    return grid


def plan(
    task: str, start: Start, data: str, output: Path, grid: Grid, seed: int, overrides: Sequence[str]
) -> Iterator[PlannedRun]:
    """Yield the fine-tunings of a model on a task with one seed.

    Args:
        task: see `config_of`; data: the folder with its files.
        grid: values of the settings that vary.
        overrides: options for every run.

    Raises InputError for an unknown or invalid setting.
    """
    model, varied_model, seeds_of_model = start
    for config, options, own in combinations(FinetuneConfig, settings_of(task), overrides, grid):
        varied, seeds = {**varied_model, **own}, {**seeds_of_model, "seed": seed}
        folder = output / folder_name(find_task(config.task).name, varied, seeds)
        paths = {"model": str(model), "data": data, "output": str(folder)}
        yield PlannedRun.of(LAUNCHER, options, config, paths, varied=varied, seeds=seeds, finished=finished)


def check_finetunings(
    runs: Sequence[PlannedRun], recorded: Mapping[str, Record], untrained: Collection[str], processes: int
) -> None:
    """Raise InputError if an unfinished run cannot be trained, or if the record of a finished one is of another run.

    The models, and the files of each task, are read once; the settings are checked with them. Of runs whose model is
    among the `untrained` ones, only the files of the task are checked.
    """
    of_model = cache(lambda model: model_identity(read_model(Path(model))))
    of_data = cache(lambda task, data, on_bad_row: data_identity(task, Path(data), on_bad_row))
    unfinished: dict[tuple[str, str], list[PlannedRun]] = {}
    for run in runs:
        config, paths = run.config, run.config.paths
        is_there = paths.model not in untrained
        with located(find_task(config.task).name):
            if run.name not in recorded:
                check_device(config.trainer.device, config.optimizer.precision, processes)
            data = of_data(config.task, paths.data, config.on_bad_row)
        if run.name in recorded:
            today = {**config.identity(), **data, **(of_model(paths.model) if is_there else {})}
            run.check_recorded(recorded[run.name], today, FinetuneConfig().identity())
        elif is_there:
            unfinished.setdefault((config.task, paths.model), []).append(run)
    for (task, _), (first, *others) in unfinished.items():
        with located(find_task(task).name):
            checked = prepare(first.config, processes)
            require(bool(checked.dev), "--data", NO_DEV_SPLIT)
            for run in others:
                check_settings(checked, run.config, processes)
