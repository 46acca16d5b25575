"""Planned fine-tunings of a sweep or a benchmark, the numbers of their results, and the checks before they start."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from ernie_gram.config.checks import require
from ernie_gram.config.loading import as_argument, flatten, load_config
from ernie_gram.experiments.experiment import check_overrides
from ernie_gram.experiments.planned_run import PlannedRun, Result
from ernie_gram.experiments.processes import check_folders_and_devices
from ernie_gram.formats.registry import read_model
from ernie_gram.run.run_folder import RESULT, Identity, identity_differences
from reader.errors import InputError, located, similar
from reader.system.installation import CONF, is_settings_file, named_settings
from reader.system.untrusted_text import json_value, limited_text, read_yaml
from tasks.metrics.catalog import METRICS
from tasks.registry.task_file import find_task, settings_of
from tasks.training.config import FinetuneConfig
from tasks.training.prepare import FINAL, MADE_FROM, check_settings, data_identity, model_identity, prepare

LAUNCHER = "tasks.run_finetune"
GRIDS = CONF / "grids"
# Options that a user cannot give to every run: the command sets them itself, or the runs could not be compared.
OWN = ("--config", "--print_config", "--task", "--seed", "--paths.output", "--paths.model")
NO_DEV_SPLIT = "the folder with the data has no labelled dev split, on which runs are compared"
Grid = Mapping[str, Sequence[Any]]


@dataclass(frozen=True, eq=False)
class FinetuneRun(PlannedRun):
    """One combination of settings with one seed."""

    def result(self) -> Result | None:
        """Return the chosen score, the scores that papers report as SPLIT.METRIC, the steps and the seconds.

        Scores that are fractions are given in percent.

        None if the run is not finished. Raises InputError if result.json is damaged, or of a run with other settings.
        """
        path = self.folder / RESULT
        if not path.is_file():
            return None
        try:
            found = json_value(limited_text(path))
            before, score, by_split = flatten(found["settings"]), found["score"], found["scores"]
            chosen, steps, seconds = found["steps"]["chosen"], found["steps"]["total"], sum(found["seconds"].values())
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"{path}: damaged: {error}; remove it, and the run is evaluated again") from error
        reason = "has the result of an earlier version; choose another --output, or remove this folder"
        require(isinstance(found.get(MADE_FROM), dict), str(self.folder), reason)
        # Results of earlier versions lack new settings. `check_made_from` compares what the paths hold.
        before = flatten(asdict(FinetuneConfig())) | before
        paths = [key for key in before if key.startswith("paths.")] + ["task"] * is_settings_file(self.config.task)
        for key, value in self.settings.items():
            require(
                before[key] == value or key in paths,
                str(self.folder),
                f"has the result of a run with {key} {before[key]}, not {value}; choose another --output",
            )
        require(score is not None, str(self.folder), NO_DEV_SPLIT)
        metric = METRICS[find_task(self.config.task).metric]
        factor = 100 if metric.unit == "fraction" else 1
        scores = {
            f"{split}.{name}": factor * values[name]
            for split, values in by_split.items()
            for name in metric.reported_scores
            if name in values
        }
        numbers = {"score": factor * score, **scores}
        return {**numbers, "chosen_step": chosen, "steps": steps, "seconds": seconds}

    def check_made_from(self, today: Identity) -> None:
        """Raise InputError if the result is of another task, another model or other data than those of `today`.

        A split that is only evaluated at the end may be there now and not then, or then and not now.
        """
        before = json_value(limited_text(self.folder / RESULT))[MADE_FROM]
        left_out = {key for key in before.keys() ^ today.keys() if key.startswith(FINAL)}
        here, now = ({key: value for key, value in each.items() if key not in left_out} for each in (before, today))
        differences = "; ".join(identity_differences(here, now, RESULT))
        reason = f"has the result of another run ({differences}); choose another --output, or remove this folder"
        require(not differences, str(self.folder), reason)


def scores_of(result: Result) -> dict[str, float]:
    """Return the scores that papers report, as SPLIT.METRIC."""
    return {name: value for name, value in result.items() if "." in name}


def read_grid(name: str, task: str) -> Grid:
    """Return the grid of a task from a file of grids: the name of a file in conf/grids, or a path.

    The keys of the file are names of tasks; a custom task has the name that its YAML file gives it.

    Raises InputError if there is no such file, or if it has no grid for the task.
    """
    path = named_settings(name, GRIDS, "grid")
    grids, key = read_yaml(path), find_task(config_of(task, ()).task).name
    if key not in grids:
        options = "give the values with --learning_rates, --batch_sizes, --epochs or --vary"
        raise InputError(f"{path}: has no grid for {key}{similar(key, grids)}; {options}")
    grid = grids[key]
    if not isinstance(grid, dict) or not all(isinstance(values, list) and values for values in grid.values()):
        raise InputError(f"{path}: {key}: expected `section.key: [value, ...]`")
    return grid


def plan(
    task: str, model: Path, output: Path, grid: Grid, seeds: Sequence[int], overrides: Sequence[str], prefix: str = ""
) -> list[FinetuneRun]:
    """Return the runs of a sweep, seed by seed, so that an unfinished sweep has results for all combinations.

    Args:
        task: the name of a task, with settings in conf/tasks, or the YAML file of a custom task or of settings.
        grid: values of the settings that vary.
        overrides: options for every run.
        prefix: the beginning of the names of the folders.

    Raises InputError for an unknown or invalid setting.
    """
    for key in grid:
        require(f"--{key}" not in OWN, key, "cannot vary; this command sets it")
        require(key != "evaluation.metric", key, "cannot vary: scores of different metrics cannot be compared")
    check_overrides(overrides, [*OWN, *(f"--{key}" for key in grid)])
    find_task(config_of(task, ()).task)
    runs = []
    for seed in seeds:
        for values in itertools.product(*grid.values()):
            options = [f"--{key}={as_argument(value)}" for key, value in zip(grid, values, strict=True)]
            config = config_of(task, (*overrides, *options))
            # One spelling for each value, because 5e-5 and 0.00005 are the same run.
            flat = flatten(asdict(config))
            varied = {key: as_argument(flat[key]) for key in grid}
            parts = [prefix] if prefix else []
            parts += [f"{key.rpartition('.')[2]}={value}" for key, value in varied.items()]
            folder = output / ",".join([*parts, f"seed={seed}"])
            config = replace(config, seed=seed, paths=replace(config.paths, model=str(model), output=str(folder)))
            options = [*overrides, *(f"--{key}={value}" for key, value in varied.items())]
            options += [f"--seed={seed}", f"--paths.output={folder}"]
            runs.append(FinetuneRun(folder, varied, seed, LAUNCHER, (task, str(model), *options), config))
    folders = [run.folder for run in runs]
    twice = next((folder for i, folder in enumerate(folders) if folder in folders[:i]), None)
    if twice:
        raise InputError(f"the grid: two runs would be called {twice.name}; is a value there twice?")
    return runs


@cache
def config_of(task: str, options: tuple[str, ...]) -> FinetuneConfig:
    """Return the settings of a run; for `task`, see `plan`. Raises InputError."""
    return load_config(FinetuneConfig, [*settings_of(task), *options])[0]


def check_finished(runs: Iterable[FinetuneRun]) -> None:
    """Raise InputError if a finished run has the result of another task, another model or other data than today's.

    Each model is read once, and the files of each task.
    """
    of_model = cache(lambda model: model_identity(read_model(Path(model))))
    of_data = cache(lambda task, data, on_bad_row: data_identity(task, Path(data), on_bad_row))
    for run in runs:
        if run.result() is not None:
            config = run.config
            with located(run.folder):
                data = of_data(config.task, config.paths.data, config.on_bad_row)
                today = {**data, **of_model(config.paths.model)}
            run.check_made_from(today)


def check_runs(runs: Sequence[FinetuneRun], processes: int) -> None:
    """Raise InputError if an unfinished run cannot be trained, or if runs cannot be compared.

    The runs of a task have the same data and the same model, which are read once; the settings are checked with them.
    """
    check_finished(runs)
    unfinished = [run for run in runs if run.result() is None]
    check_folders_and_devices(unfinished, processes)
    for task in dict.fromkeys(run.config.task for run in unfinished):
        first, *others = [run for run in unfinished if run.config.task == task]
        with located(task):
            checked = prepare(first.config, processes)
            require(bool(checked.dev), "--data", NO_DEV_SPLIT)
            for run in others:
                check_settings(checked, run.config, processes)
