"""Checkpoints: folders `step_N`, written atomically.

    model.safetensors      the parameters
    optimizer.safetensors  Adam's moments and powers
    state.json             step, consumed samples, learning rate, the run's identity and configuration
    checksums.json         SHA-256 of the files above

Random states are not stored: the random numbers of a step are a function of (seed, step, rank).
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from reader.errors import InputError
from reader.system.atomic_files import atomic_folder, remove_folder, sha256_of

MODEL, OPTIMIZER, STATE, CHECKSUMS = "model.safetensors", "optimizer.safetensors", "state.json", "checksums.json"
FILES = (MODEL, OPTIMIZER, STATE)

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class State:
    """The progress of a run.

    Attributes:
        step: number of updates made.
        consumed: number of training samples drawn.
        learning_rate: of the next update.
        identity: everything that can change the run's result, as flat keys and values.
        config: the whole configuration as nested dicts.
    """

    step: int
    consumed: int
    learning_rate: float
    identity: dict[str, Any]
    config: dict[str, Any]


def checkpoints(output: Path) -> list[Path]:
    """Return the checkpoints in a run's folder, oldest first. They may be damaged, see `verify`."""
    found = [path for path in output.glob("step_*") if path.is_dir() and path.name[5:].isdecimal()]
    return sorted(found, key=lambda path: int(path.name[5:]))


def save(output: Path, state: State, model: Arrays, optimizer: Arrays, keep: int) -> Path:
    """Write `output/step_N`, and remove all but the `keep` newest checkpoints.

    Raises InputError if writing fails, or if a parameter is not finite, because such a checkpoint cannot be used.
    """
    path = output / f"step_{state.step}"
    for name, values in model.items():
        if not np.isfinite(values).all():
            raise InputError(f"{path}: not written, {name} holds numbers that are not finite")
    with atomic_folder(path) as folder:
        try:
            save_file(model, folder / MODEL)
            save_file(optimizer, folder / OPTIMIZER)
        except SafetensorError as error:
            raise InputError(f"{path}: could not be written: {error}") from error
        (folder / STATE).write_text(json.dumps(vars(state), indent=1) + "\n")
        sums = {name: sha256_of(folder / name) for name in FILES}
        (folder / CHECKSUMS).write_text(json.dumps(sums, indent=1) + "\n")
    for old in checkpoints(output)[:-keep]:
        remove_folder(old)
    return path


def remove_beyond(output: Path, step: int) -> None:
    """Remove the checkpoints of later steps, and the partial folders of interrupted saves."""
    for path in checkpoints(output):
        if int(path.name[5:]) > step:
            remove_folder(path)
    for left in output.glob(".step_*"):
        shutil.rmtree(left, ignore_errors=True)


def verify(path: Path, names: tuple[str, ...] = FILES) -> None:
    """Raise InputError unless the named files of a checkpoint have the checksums stored when it was written."""
    if not path.is_dir():
        raise InputError(f"{path}: no such checkpoint")
    try:
        sums: dict[str, str] = json.loads((path / CHECKSUMS).read_text())
        for name in names:
            if sha256_of(path / name) != sums[name]:
                raise InputError(f"{path / name}: truncated or altered (its SHA-256 is not the one written)")
    except FileNotFoundError as error:
        raise InputError(f"{error.filename}: missing from the checkpoint") from error
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path / CHECKSUMS}: damaged: {error}") from error


def newest_valid(output: Path, names: tuple[str, ...] = FILES) -> Path | None:
    """Return the newest checkpoint whose named files pass `verify`, or None."""
    for path in reversed(checkpoints(output)):
        try:
            verify(path, names)
        except InputError:
            continue
        return path
    return None


def load_state(path: Path) -> State:
    """Load the state of a verified checkpoint."""
    return State(**json.loads((path / STATE).read_text()))


def load_model(path: Path) -> Arrays:
    """Load the parameters of a verified checkpoint."""
    return load_file(path / MODEL)


def load_optimizer(path: Path) -> Arrays:
    """Load the optimizer's arrays of a verified checkpoint."""
    return load_file(path / OPTIMIZER)
