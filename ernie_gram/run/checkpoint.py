"""Checkpoints: folders `step_N`, written atomically.

    model.safetensors      the parameters
    optimizer.safetensors  Adam's moments and powers
    state.json             step, consumed samples, learning rate, the run's identity and configuration
    checksums.json         SHA-256 of the files above

A run that chooses the best evaluation also has the folder `best`: the files of a checkpoint without the optimizer.

Random states are not stored: the random numbers of a step are a function of (seed, step, rank).
"""

from __future__ import annotations

import json
import shutil
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from reader.errors import InputError
from reader.system.atomic_files import atomic_folder, remove_folder, sha256_of
from reader.system.untrusted_text import json_value, limited_text, record_of

MODEL, OPTIMIZER, STATE, CHECKSUMS = "model.safetensors", "optimizer.safetensors", "state.json", "checksums.json"
FILES = (MODEL, OPTIMIZER, STATE)
MODEL_FILES = (MODEL, STATE)
BEST = "best"

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
        selection: the fields of job.Progress, for a run that chooses the best evaluation.
        guard: loss_scale.STATE by name, for a run that skips updates.
        loss_sums: see step_values.loss_sums; empty in checkpoints of earlier versions.
    """

    step: int
    consumed: int
    learning_rate: float
    identity: dict[str, Any]
    config: dict[str, Any]
    selection: dict[str, Any] = field(default_factory=dict)
    guard: dict[str, float] = field(default_factory=dict)
    loss_sums: list[float] = field(default_factory=list)


def save_safetensors(path: Path, arrays: Arrays, layout: str = "np") -> None:
    """Write arrays as a safetensors file that has the usual permissions; raises OSError.

    The library makes files that only their owner can read, so that other users could not load the model. It writes the
    buffer of an array without regard to its strides. `layout` is the metadata that PaddleNLP and transformers require.
    """
    path.touch()
    mode = path.stat().st_mode
    try:
        save_file({name: np.asarray(array, order="C") for name, array in arrays.items()}, path, {"format": layout})
    except SafetensorError as error:
        raise OSError(0, str(error)) from error
    path.chmod(mode)


def checkpoints(output: Path) -> list[Path]:
    """Return the checkpoints in a run's folder, oldest first. They may be damaged, see `verify`."""
    found = [path for path in output.glob("step_*") if path.is_dir() and path.name[5:].isdecimal()]
    return sorted(found, key=step_of)


def step_of(path: Path) -> int:
    """Return the step of a folder `step_N`; raises ValueError for another name."""
    return int(path.name.removeprefix("step_"))


def save(output: Path, state: State, model: Arrays, optimizer: Arrays, keep: int) -> Path:
    """Write `output/step_N`, and remove all but the `keep` newest checkpoints.

    Raises SystemRefusedError if writing fails, InputError if a parameter is not finite: such a checkpoint cannot be
    used.
    """
    path = output / f"step_{state.step}"
    _write(path, state, {MODEL: model, OPTIMIZER: optimizer})
    for old in checkpoints(output)[:-keep]:
        # The new checkpoint is written, so an error here is not a failure; the next save tries again.
        with suppress(OSError):
            remove_folder(old)
    return path


def save_best(output: Path, state: State, model: Arrays) -> None:
    """Write `output/best`, which replaces an earlier one; raises InputError as `save` does."""
    _write(output / BEST, state, {MODEL: model})


def _write(path: Path, state: State, arrays: dict[str, Arrays]) -> None:
    """Write a folder with a file for each entry of `arrays`, the state and the checksums."""
    for name, values in arrays[MODEL].items():
        if not np.isfinite(values).all():
            raise InputError(f"{path}: not written, {name} holds numbers that are not finite")
    with atomic_folder(path) as folder:
        for name, content in arrays.items():
            save_safetensors(folder / name, content)
        (folder / STATE).write_text(json.dumps(vars(state), indent=1) + "\n")
        write_checksums(folder)


def best_step(output: Path) -> int | None:
    """Return the step of the model in `output/best`, or None if there is none; raises InputError if it is damaged."""
    best = output / BEST
    if not best.is_dir():
        return None
    try:
        verify(best, MODEL_FILES)
    except InputError as error:
        raise InputError(f"{error}; remove {best}, and the best of later evaluations is kept, or start anew") from error
    return load_state(best).step


def remove_beyond(output: Path, step: int) -> None:
    """Remove the checkpoints of later steps, and the partial folders of interrupted saves."""
    for path in checkpoints(output):
        if step_of(path) > step:
            remove_folder(path)
    for left in (*output.glob(".step_*"), *output.glob(f".{BEST}.partial")):
        shutil.rmtree(left, ignore_errors=True)


def write_checksums(folder: Path) -> None:
    """Write checksums.json, the SHA-256 of every file, into a folder that is not yet under its final name."""
    sums = {path.name: sha256_of(path) for path in sorted(folder.iterdir())}
    (folder / CHECKSUMS).write_text(json.dumps(sums, indent=1) + "\n", encoding="utf-8")


def verify(path: Path, names: tuple[str, ...] = FILES) -> None:
    """Raise InputError unless the named files of a checkpoint have the checksums stored when it was written."""
    if not path.is_dir():
        raise InputError(f"{path}: no such checkpoint")
    try:
        sums: dict[str, str] = json_value(limited_text(path / CHECKSUMS))
        for name in names:
            if sha256_of(path / name) != sums[name]:
                raise InputError(f"{path / name}: truncated or altered (its SHA-256 is not the one written)")
    except FileNotFoundError as error:
        raise InputError(f"{error.filename}: missing from the checkpoint") from error
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path / CHECKSUMS}: damaged: {error}") from error


def newest_and_damage(output: Path, names: tuple[str, ...] = FILES) -> tuple[Path | None, list[InputError]]:
    """Return the newest checkpoint whose named files pass `verify`, or None, and the errors of newer ones."""
    damage: list[InputError] = []
    for path in reversed(checkpoints(output)):
        try:
            verify(path, names)
        except InputError as error:
            damage.append(error)
            continue
        return path, damage
    return None, damage


def newest_valid(output: Path, names: tuple[str, ...] = FILES) -> Path | None:
    """Return the newest checkpoint whose named files pass `verify`, or None."""
    return newest_and_damage(output, names)[0]


def passed_over(damage: InputError, chosen: Path) -> str:
    """Return one line that says that an older checkpoint is used instead of a damaged one."""
    return f"{damage}; {chosen.name} is used instead"


def load_state(path: Path) -> State:
    """Load the state of a verified checkpoint.

    Raises InputError if it has other keys or types: checksums show damage, but not who wrote the files.
    """
    try:
        found = json_value(limited_text(path / STATE))
    except ValueError as error:
        raise InputError(f"{path / STATE}: damaged: {error}") from error
    return record_of(State, found, str(path / STATE))


def load_model(path: Path) -> Arrays:
    """Load the parameters of a verified checkpoint."""
    return load_file(path / MODEL)


def load_optimizer(path: Path) -> Arrays:
    """Load the optimizer's arrays of a verified checkpoint."""
    return load_file(path / OPTIMIZER)
