"""All formats of model folders: which one a folder has, reading it, and writing another one.

A format is a module with the members of `Format`, or of `ReadFormat` if it is only read. Nothing else knows which
formats there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from ernie_gram.formats import bert, ours, paddlenlp, run_checkpoint, upstream_dygraph, upstream_static
from ernie_gram.formats.model import Model
from ernie_gram.formats.obstacle import Obstacle
from reader.errors import InputError
from reader.system.atomic_files import atomic_folder
from reader.system.output_files import check_new_folder
from reader.system.progress import progress


class ReadFormat(Protocol):
    """A format that can be read.

    Attributes:
        NAME: of the format, as in `--to` and in Model.format.
        LOOKS_FOR: the files by which `detect` recognises it, in words.
    """

    NAME: str
    LOOKS_FOR: str

    def detect(self, folder: Path) -> bool:
        """Return whether a folder has this format."""

    def read(self, folder: Path) -> Model:
        """Return the model in a folder; raises InputError that names the file."""


class Format(ReadFormat, Protocol):
    """A format that can be read and written."""

    def cannot_hold(self, model: Model) -> Sequence[Obstacle]:
        """Return what the format cannot hold of a model; [] if reading what was written gives the same model."""

    def write(self, model: Model, folder: Path, name: str) -> None:
        """Write the files of a model into an empty folder that will have the given name.

        There are no obstacles but losses, see `cannot_hold`.
        """


AnyFormat = TypeVar("AnyFormat", bound=ReadFormat)

WRITTEN: tuple[Format, ...] = (ours, upstream_static, upstream_dygraph, bert, paddlenlp)
FORMATS: tuple[ReadFormat, ...] = (run_checkpoint, *WRITTEN)
NAMES = tuple(each.NAME for each in FORMATS)
WRITTEN_NAMES = tuple(each.NAME for each in WRITTEN)


def read_model(path: Path, format_name: str | None = None) -> Model:
    """Return the model in a folder of any format.

    Args:
        format_name: one of NAMES; None means that the format is found by looking for its files.
    Raises InputError if there is no such folder, if the folder has no format or several, or if its files are damaged or
    do not fit together.
    """
    if not path.is_dir():
        raise InputError(f"{path}: {'is a file, not a folder' if path.exists() else 'no such folder'}")
    if format_name is not None:
        return _read(_named(FORMATS, format_name), path)
    found = [each for each in FORMATS if each.detect(path)]
    if not found:
        raise InputError(
            f"{path}: not a checkpoint, and not a run's folder with a valid checkpoint or another model folder; "
            f"`ernie-gram convert --list` names the files of each format"
        )
    if len(found) > 1:
        raise InputError(
            f"{path}: has files of several formats: "
            f"{'; '.join(f'{each.NAME} ({each.LOOKS_FOR})' for each in found)}; keep the files of one"
        )
    return _read(found[0], path)


def write_model(model: Model, folder: Path, format_name: str, accept_loss: bool = False) -> list[str]:
    """Write a model as a new folder, completely or not at all.

    Args:
        format_name: one of WRITTEN_NAMES.
        accept_loss: whether to write a model of which the format cannot hold everything.
    Returns:
        What was lost, one line each.

    Raises InputError if `folder` exists, or if the format cannot hold the model.
    """
    chosen = _named(WRITTEN, format_name)
    check_new_folder(folder)
    lost = accepted_losses(model, format_name, chosen.cannot_hold(model), accept_loss)
    with atomic_folder(folder) as partial, progress(f"writing {folder}"):
        chosen.write(model, partial, folder.name)
    return lost


def accepted_losses(model: Model, format_name: str, obstacles: Sequence[Obstacle], accept_loss: bool) -> list[str]:
    """Return what is lost, one line each; raises InputError if it may not be lost, or if nothing can be written."""
    for obstacle in obstacles:
        if not (obstacle.is_loss and accept_loss):
            more = f" (and {len(obstacles) - 1} more)" if len(obstacles) > 1 else ""
            advice = "; --accept_loss writes the model all the same" if all(each.is_loss for each in obstacles) else ""
            raise InputError(f"{model.source}: {format_name} cannot hold {obstacle.reason}{more}{advice}")
    return [obstacle.reason for obstacle in obstacles]


def _read(chosen: ReadFormat, folder: Path) -> Model:
    with progress(f"reading the model in {folder}"):
        return chosen.read(folder)


def _named(formats: Sequence[AnyFormat], name: str) -> AnyFormat:
    named = {each.NAME: each for each in formats}
    if name not in named:
        raise InputError(f"format {name}: not one of {', '.join(named)}")
    return named[name]
