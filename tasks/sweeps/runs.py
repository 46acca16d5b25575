"""The runs of a sweep: pre-trainings and fine-tunings with every combination of what varies, and their results."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

from ernie_gram.config import require
from ernie_gram.config.loading import as_argument, flatten, load_config
from ernie_gram.distributed.device import check_device
from ernie_gram.formats.registry import read_model
from ernie_gram.pretraining.config import PretrainConfig
from ernie_gram.pretraining.prepare import evaluation_settings
from ernie_gram.pretraining.prepare import prepare as prepare_pretraining
from ernie_gram.run import checkpoint
from ernie_gram.run.run_folder import RESULT, Identity, identity_differences
from ernie_gram.run.run_log import CPU, RESULTS, read_log
from reader.errors import InputError, located, similar
from reader.system.installation import CONF, is_settings_file, settings_file
from reader.system.untrusted_text import json_value, limited_text, read_yaml
from tasks.files.official import with_labels
from tasks.metrics.catalog import METRICS
from tasks.registry import find_task
from tasks.registry.task_file import settings_of
from tasks.training.config import FinetuneConfig
from tasks.training.data import file_digests
from tasks.training.prepare import model_identity, prepare

Grid = Mapping[str, Sequence[Any]]
# A line of results.jsonl: `run`, `kind`, `task`, `varied`, the seeds, `result` (numbers by name), and `settings`, which
# has everything that can change the result, also digests of the data and the model.
Record = dict[str, Any]
# Options that a user cannot give to every run: the command sets them itself, or the runs could not be compared.
OWN = ("config", "print_config", "check", "task", "seed", "paths.output", "paths.model", "paths.data")
PRETRAIN, FINETUNE = "pretrain", "finetune"
COMMANDS = {PRETRAIN: PretrainConfig, FINETUNE: FinetuneConfig}
ADVICE = f"choose another --output, or remove the folder and its line in {RESULTS}"


@dataclass(frozen=True, eq=False)
class PlannedRun:
    """A planned run.

    Attributes:
        folder: of the run; its name is the name of the run.
        varied: what the sweep varies besides seeds, key -> value as on the command line.
        seeds: `seed`, and `pretrain_seed` if a pre-training of the sweep is fine-tuned.
        command: what follows `python -m` to start the training in NPROC processes: module, name of a command, options.
        config: the resolved settings.
    """

    folder: Path
    varied: Mapping[str, str]
    seeds: Mapping[str, int]
    command: tuple[str, ...]
    config: Any

    @property
    def name(self) -> str:
        """The name of the folder."""
        return self.folder.name

    def record(self) -> Record | None:
        """Return the record of a finished run, None if it is not finished."""
        is_pretraining = isinstance(self.config, PretrainConfig)
        found = finished_pretraining(self.folder, self.config) if is_pretraining else finished_finetuning(self.folder)
        return found and {"run": self.name, "varied": dict(self.varied), **self.seeds, **found}

    def check_recorded(self, record: Record, today: Identity) -> None:
        """Raise InputError if a record of this run differs in something that can change a result and is known today."""
        then = record.get("settings", {})
        there, here = ({key: each[key] for key in then.keys() & today.keys()} for each in (then, today))
        differences = "; ".join(identity_differences(there, here, RESULTS))
        require(not differences, str(self.folder), f"has the result of another run ({differences}); {ADVICE}")


@cache
def _loaded(config_type: type, options: tuple[str, ...]) -> Any:
    return load_config(config_type, list(options))[0]


def planned_runs(
    command: str,
    settings: Sequence[str],
    overrides: Sequence[str],
    grid: Grid,
    folder: Path,
    varied: Mapping[str, str],
    seeds: Mapping[str, int],
    **paths: str,
) -> Iterator[PlannedRun]:
    """Yield the run of every combination of the values of a grid.

    Args:
        settings: options of the command; overrides: those of the user.
        folder: the names of the runs begin with its name; the last parts of keys and values follow.
        varied, seeds: of all these runs.
        paths: of the settings, besides that of the output.

    Raises InputError for an unknown or invalid setting, and for one that the command sets itself.
    """
    for option in overrides:
        key = option.partition("=")[0]
        is_free = key.removeprefix("--") not in (*OWN, *grid)
        require(is_free, key, "not among the options for every run; this command sets it")
    for key in grid:
        require(key not in OWN, key, "cannot vary; this command sets it")
    for values in itertools.product(*grid.values()):
        given = (f"--{key}={as_argument(value)}" for key, value in zip(grid, values, strict=True))
        options = (*settings, *overrides, *given)
        config = _loaded(COMMANDS[command], options)
        # One spelling for each value, because 5e-5 and 0.00005 are the same run.
        flat = flatten(asdict(config))
        own = {**varied, **{key: as_argument(flat[key]) for key in grid}}
        parts = [f"{key.rpartition('.')[2]}={Path(str(value)).name}" for key, value in {**own, **seeds}.items()]
        output = folder.with_name(",".join([folder.name, *parts]))
        all_paths = {**paths, "output": str(output)}
        config = replace(config, seed=seeds["seed"], paths=replace(config.paths, **all_paths))
        options += (*(f"--paths.{key}={path}" for key, path in all_paths.items()), f"--seed={config.seed}")
        yield PlannedRun(output, own, seeds, ("reader.console_script", command, *options), config)


# Of an evaluation; the first one is the score of a pre-training.
PERPLEXITIES = ("ngram_perplexity", "perplexity", "accuracy", "generator_ngram_perplexity")


def finished_pretraining(folder: Path, config: PretrainConfig) -> Record | None:
    """Return the last evaluation of a run, all evaluations as `curve`, and the median CPU time of a step.

    A run whose last checkpoint or last evaluation is missing is not finished.
    """
    newest = checkpoint.newest_valid(folder, (checkpoint.STATE,))
    if newest is None or checkpoint.step_of(newest) != config.trainer.max_steps:
        return None
    log = read_log(folder)
    curve = [
        {key: each[key] for key in ("step", *PERPLEXITIES) if key in each} for each in log if each["kind"] == "eval"
    ]
    if config.paths.held_out and (not curve or curve[-1]["step"] != config.trainer.max_steps):
        return None
    last = curve[-1] if config.paths.held_out else {}
    result = {**{key: last[key] for key in PERPLEXITIES if key in last}, "steps": config.trainer.max_steps}
    if spent := [record[CPU] for record in log if record["kind"] == "train" and record.get(CPU)]:
        result[CPU] = median(spent)
    known, state = {"kind": "pre-training", "task": "pre-training"}, checkpoint.load_state(newest)
    evaluated = {f"trainer.{key}": state.config["trainer"][key] for key in ("eval_sequences", "eval_draws")}
    return {**known, "result": result, "curve": curve, "settings": state.identity | evaluated}


def check_pretrainings(runs: Sequence[PlannedRun], recorded: Mapping[str, Record], processes: int) -> None:
    """Raise InputError if a run cannot be trained, or if a finished one is another run."""
    for run in runs:
        config, given = load_config(PretrainConfig, list(run.command[2:]))
        with located(run.name):
            if run.name not in recorded:
                check_device(config.trainer.device, config.optimizer.precision, processes)
            identity = prepare_pretraining(config, processes, False, given).identity
        if run.name in recorded:
            run.check_recorded(recorded[run.name], identity | evaluation_settings(config))


GRIDS = CONF / "grids"
NO_DEV_SPLIT = "the folder with the data has no labelled dev split, on which runs are compared"


def finished_finetuning(folder: Path) -> Record | None:
    """Return what result.json of a run has; scores that are fractions are given in percent.

    `result` has the chosen score, the scores that papers report as SPLIT.METRIC, the steps and the seconds. Raises
    InputError if the file is damaged.
    """
    path = folder / RESULT
    if not path.is_file():
        return None
    try:
        found = json_value(limited_text(path))
        metric, identity = METRICS[found["metric"]["name"]], {**found["identity"]}
        factor = 100 if metric.unit == "fraction" else 1
        scores = {
            f"{split}.{name}": factor * values[name]
            for split, values in found["scores"].items()
            for name in metric.reported
            if name in values
        }
        numbers = {"chosen_step": found["steps"]["chosen"], "steps": found["steps"]["total"]}
        result = {"score": factor * found["score"], **scores, **numbers, "seconds": float(found["seconds"])}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path}: damaged, of an earlier version, or without a score: {error}; {ADVICE}") from error
    known = {"kind": "fine-tuning", "task": found["task"], "metric": found["metric"], "result": result}
    return {**known, "settings": identity}


@cache
def config_of(task: str) -> FinetuneConfig:
    """Return the settings of a task: a name, or the YAML file of a custom task or of settings; raises InputError."""
    return load_config(FinetuneConfig, settings_of(task))[0]


def read_grid(name: str, task: str) -> Grid:
    """Return the grid of a task from a file of grids: the name of a file in conf/grids, or a path.

    The keys of the file are names of tasks; a custom task has the name that its YAML file gives it.

    Raises InputError if there is no such file, or if it has no grid for the task.
    """
    path = settings_file(Path(name)) if is_settings_file(name) else GRIDS / f"{name}.yaml"
    grids, key = read_yaml(path), find_task(config_of(task).task).name
    if key not in grids:
        raise InputError(f"{path}: has no grid for {key}{similar(key, grids)}; give the values with --vary")
    grid = grids[key]
    if not isinstance(grid, dict) or not all(isinstance(values, list) and values for values in grid.values()):
        raise InputError(f"{path}: {key}: expected `section.key: [value, ...]`")
    return grid


def check_finetunings(
    runs: Sequence[PlannedRun], recorded: Mapping[str, Record], untrained: Collection[str], processes: int
) -> None:
    """Raise InputError if an unfinished run cannot be trained, or if the record of a finished one is of another run.

    The models, and the files of each task, are read once; the first run of each model and task is checked with them,
    and the settings of the others by themselves. Of runs whose model is among the `untrained` ones, only the files of
    the task are checked.
    """
    of_model = cache(lambda model: model_identity(read_model(Path(model))))
    of_data = cache(lambda name, data, on_bad_row: file_digests(with_labels(find_task(name), data, on_bad_row), data))
    unfinished: dict[tuple[str, str], FinetuneConfig] = {}
    for run in runs:
        config, paths = run.config, run.config.paths
        is_there = paths.model not in untrained
        with located(find_task(config.task).name):
            if run.name not in recorded:
                check_device(config.trainer.device, config.optimizer.precision, processes)
            data = of_data(config.task, Path(paths.data), config.on_bad_row)
        if run.name in recorded:
            today = {**config.identity(), **data, **(of_model(paths.model) if is_there else {})}
            run.check_recorded(recorded[run.name], today)
        elif is_there:
            unfinished.setdefault((config.task, paths.model), config)
    for config in unfinished.values():
        with located(find_task(config.task).name):
            require(bool(prepare(config, processes).dev), "--data", NO_DEV_SPLIT)
