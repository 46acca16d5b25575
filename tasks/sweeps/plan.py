"""The plan of a sweep: every combination of settings with every seed, each with its own folder. No Paddle here."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ernie_gram.config.loading import flatten, load_config, read_yaml
from ernie_gram.run.many_runs import Command, launcher
from reader.errors import InputError
from reader.system.installation import CONF, settings_file
from tasks.layouts.columns import similar
from tasks.registry.settings_file import settings_of
from tasks.registry.task_file import find_task
from tasks.sweeps.results import Result, read_result
from tasks.training.config import FinetuneConfig

GRIDS = CONF / "grids"
# What a sweep sets itself, or what would make the runs different trainings.
OWN = ("--config", "--print_config", "--task", "--seed", "--paths.output", "--paths.model")
# Settings that do not change the result of a run.
WITHOUT_EFFECT = ("paths.", "trainer.")

NO_DEV_SPLIT = "the folder with the data has no labelled dev split, on which runs are compared"

Grid = Mapping[str, Sequence[Any]]


@dataclass(frozen=True)
class SweepRun:
    """One combination of settings with one seed.

    Attributes:
        settings: the settings that the sweep varies: dotted key -> value as on the command line.
        seed: of the run.
        arguments: those of `ernie-gram finetune`.
        config: the resolved settings.
    """

    settings: tuple[tuple[str, str], ...]
    seed: int
    arguments: tuple[str, ...]
    config: FinetuneConfig

    @property
    def folder(self) -> Path:
        return Path(str(self.config.paths.output))

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def command(self) -> Command:
        return Command(self.name, self.folder, (*launcher("tasks.run_finetune"), *self.arguments))

    def result(self) -> Result | None:
        """Return the result of the run, or None if it is not finished.

        Raises InputError if the folder has the result of a run with other settings.
        """
        found = read_result(self.folder)
        if found is None:
            return None
        before, now = flatten(found["settings"]), flatten(asdict(self.config))
        for key, value in now.items():
            same = key.startswith(WITHOUT_EFFECT) and key not in ("paths.model", "paths.data")
            if not same and before.get(key) != value:
                raise InputError(
                    f"{self.folder}: has the result of a run with {key} {before.get(key)}, not {value}; choose another "
                    "--output"
                )
        if found["score"] is None:
            raise InputError(f"{self.folder}: {NO_DEV_SPLIT}")
        return found


def _spelled(value: Any) -> str:
    """Return a value as on the command line."""
    return value if isinstance(value, str) else json.dumps(value)


def read_grid(name: str, task: str) -> Grid:
    """Return the grid of a task from a file of grids: the name of a file in conf/grids, or a path.

    The grids of the file have the names of tasks, also for a task of one's own, which is given as a YAML file.
    Raises InputError if there is no such file, or if it has no grid for the task.
    """
    path = settings_file(Path(name)) if name.endswith((".yaml", ".yml")) else GRIDS / f"{name}.yaml"
    if not path.is_file():
        known = ", ".join(sorted(each.stem for each in GRIDS.glob("*.yaml")))
        raise InputError(f"--grid: no file {path}; the grids of this project are {known}")
    grids, key = read_yaml(path), find_task(task).name
    if key not in grids:
        options = "give the values with --learning_rates, --batch_sizes, --epochs or --vary"
        raise InputError(f"{path}: has no grid for {key}{similar(key, grids)}; {options}")
    grid = grids[key]
    if not isinstance(grid, dict) or not all(isinstance(values, list) and values for values in grid.values()):
        raise InputError(f"{path}: {key}: expected `section.key: [value, ...]`")
    return grid


def plan(
    task: str, model: Path, output: Path, grid: Grid, seeds: Sequence[int], overrides: Sequence[str], prefix: str = ""
) -> list[SweepRun]:
    """Return the runs of a sweep, seed by seed, so that an unfinished sweep has results for all combinations.

    Args:
        task: the name of a task, with settings in conf/tasks, or the YAML file of a task of one's own.
        grid: values of the settings that vary.
        overrides: options for every run.
        prefix: the beginning of the names of the folders.

    Raises InputError for an unknown or invalid setting.
    """
    for option in overrides:
        key = option.partition("=")[0]
        if key in OWN or key.removeprefix("--") in grid:
            raise InputError(f"{key}: not among the options for every run; the sweep sets it")
    find_task(task)
    start = settings_of(task)
    runs = []
    for seed in seeds:
        for values in itertools.product(*grid.values()):
            varied = [f"--{key}={value}" for key, value in zip(grid, values, strict=True)]
            arguments = [*start, "--paths.model", str(model), *overrides, *varied, f"--seed={seed}"]
            config, _ = load_config(FinetuneConfig, arguments, "tasks.sweep", "", {})
            # One spelling for each value, as 5e-5 and 0.00005 are the same run.
            flat = flatten(asdict(config))
            settings = tuple((key, _spelled(flat[key])) for key in grid)
            parts = [prefix] if prefix else []
            parts += [f"{key.rpartition('.')[2]}={value}" for key, value in settings]
            folder = output / ",".join([*parts, f"seed={seed}"])
            config = replace(config, paths=replace(config.paths, output=str(folder)))
            options = [*overrides, *(f"--{key}={value}" for key, value in settings)]
            options += [f"--seed={seed}", f"--paths.output={folder}"]
            runs.append(SweepRun(settings, seed, (task, str(model), *options), config))
    folders = [run.folder for run in runs]
    if len(set(folders)) < len(folders):
        raise InputError("the grid has a value twice, or two settings with the same last name")
    return runs
