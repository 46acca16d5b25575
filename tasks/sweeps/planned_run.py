"""Planned runs of a sweep: trainings with every combination of the settings that vary, and every seed."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from ernie_gram.config.checks import require
from ernie_gram.config.loading import as_argument, flatten, load_config
from ernie_gram.run.results_file import RESULTS
from ernie_gram.run.run_folder import Identity, identity_differences

Grid = Mapping[str, Sequence[Any]]
# A line of results.jsonl: `run`, `kind`, `task`, `varied`, the seeds, `result` (numbers by name), and `settings`, which
# has everything that can change the result, also digests of the data and the model.
Record = dict[str, Any]
# Options that a user cannot give to every run: the command sets them itself, or the runs could not be compared.
OWN = ("config", "print_config", "check", "task", "seed", "paths.output", "paths.model", "paths.data")
ADVICE = f"choose another --output, or remove the folder and its line in {RESULTS}"


@dataclass(frozen=True, eq=False)
class PlannedRun:
    """A planned run.

    Attributes:
        folder: of the run; its name is the name of the run.
        varied: what the sweep varies besides seeds, key -> value as on the command line.
        seeds: `seed`, and `pretrain_seed` if a pre-training of the sweep is fine-tuned.
        command: the module that starts the training in NPROC processes, and its arguments.
        config: the resolved settings.
        finished: returns the rest of the record of a finished run from its folder; None if it is not finished.
    """

    folder: Path
    varied: Mapping[str, str]
    seeds: Mapping[str, int]
    command: tuple[str, ...]
    config: Any
    finished: Callable[[Path, Any], Record | None]

    @classmethod
    def of(
        cls, module: str, options: tuple[str, ...], config: Any, paths: Mapping[str, str], **more: Any
    ) -> PlannedRun:
        """Return the run that a command trains with some options, in which paths and seed are still missing."""
        config = replace(config, seed=more["seeds"]["seed"], paths=replace(config.paths, **paths))
        given = (*(f"--paths.{key}={path}" for key, path in paths.items()), f"--seed={config.seed}")
        return cls(Path(paths["output"]), command=(module, *options, *given), config=config, **more)

    @property
    def name(self) -> str:
        """The name of the folder."""
        return self.folder.name

    def record(self) -> Record | None:
        """Return the record of a finished run, None if it is not finished."""
        found = self.finished(self.folder, self.config)
        return found and {"run": self.name, "varied": dict(self.varied), **self.seeds, **found}

    def check_recorded(self, record: Record, today: Identity, defaults: Identity) -> None:
        """Raise InputError if a record of this run differs in something that can change a result and is known today.

        `defaults` are those of the settings: results of earlier versions lack new ones.
        """
        then = {**defaults, **record.get("settings", {})}
        there, here = ({key: each[key] for key in then.keys() & today.keys()} for each in (then, today))
        differences = "; ".join(identity_differences(there, here, RESULTS))
        require(not differences, str(self.folder), f"has the result of another run ({differences}); {ADVICE}")


@cache
def _loaded(config_type: type, options: tuple[str, ...]) -> Any:
    return load_config(config_type, list(options))[0]


def combinations(
    config_type: type, settings: Sequence[str], overrides: Sequence[str], grid: Grid
) -> Iterator[tuple[Any, tuple[str, ...], dict[str, str]]]:
    """Yield the configuration of every combination of the values of a grid, its options, and the values as texts.

    Args:
        settings: options of the command; overrides: those of the user.

    Raises InputError for an unknown or invalid setting, and for one that the command sets itself.
    """
    for option in overrides:
        key = option.partition("=")[0]
        is_free = key.removeprefix("--") not in (*OWN, *grid)
        require(is_free, key, "not among the options for every run; this command sets it")
    for key in grid:
        require(key not in OWN, key, "cannot vary; this command sets it")
        require(key != "evaluation.metric", key, "cannot vary: scores of different metrics cannot be compared")
    for values in itertools.product(*grid.values()):
        given = (f"--{key}={as_argument(value)}" for key, value in zip(grid, values, strict=True))
        options = (*settings, *overrides, *given)
        config = _loaded(config_type, options)
        # One spelling for each value, because 5e-5 and 0.00005 are the same run.
        flat = flatten(asdict(config))
        yield config, options, {key: as_argument(flat[key]) for key in grid}


def folder_name(first: str, varied: Mapping[str, str], seeds: Mapping[str, int]) -> str:
    """Return the name of a run: that of its task or file of settings, and the last parts of keys and values."""
    parts = [f"{key.rpartition('.')[2]}={Path(str(value)).name}" for key, value in {**varied, **seeds}.items()]
    return ",".join([first, *parts])
