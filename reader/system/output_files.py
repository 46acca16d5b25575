"""The rules for files and folders that a user names as the output of a command, and the work folder of a long one.

A folder is never replaced, nor is a file of a run, checkpoint, corpus or model; any other file only with --overwrite.
Commands check this before their work begins.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from reader.errors import InputError, print_note
from reader.system.atomic_files import check_writable, remove_folder, write_atomically
from reader.system.lock_files import locked_name

RUN = "run"
# In the work folder of a long job.
PLAN_FILE = "plan.json"
# The files by which each kind of folder is known. A checkpoint has the weights of a model too.
MARKERS = {
    "corpus": ("corpus.json",),
    "checkpoint": ("state.json",),
    "exported model": ("inference.json", "onnx.json"),
    "model": (
        *("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json"),
        *("model_state.pdparams", "saved_weights.pdparams", "ernie_config.json"),
    ),
    RUN: ("log.jsonl", "task.json", "step_*/state.json", "best/state.json"),
}


def add_output_file(parser: argparse._ActionsContainer, meaning: str, **more: Any) -> None:
    """Add --output, which names a file to write, and --overwrite; see `check_output_path`."""
    parser.add_argument("--output", help=meaning, **{"type": Path, "metavar": "FILE", **more})
    parser.add_argument("--overwrite", action="store_true", help="replace an existing --output")


def check_output_path(option: str, path: Path, overwrite: bool, inputs: Iterable[Path] = ()) -> None:
    """Raise InputError unless the file that an option names may and can be written; creates nothing.

    Args:
        overwrite: whether an existing one may be replaced.
        inputs: what the command reads.
    """
    if not path.name:
        raise InputError(f"{option}: {path} has no file name; give the path of the result")
    if path.exists() or path.is_symlink():
        if any(each.exists() and each.samefile(path) for each in inputs):
            raise InputError(f"{option}: {path} is also an input; choose another {option}")
        if path.exists() and not path.is_file():
            raise InputError(f"{path}: is not a regular file; choose another {option}")
        for folder in (path.parent.resolve() / path.name).parents:
            if kind := kind_of(folder):
                raise InputError(f"{option}: {path} belongs to the {kind} in {folder}; choose another {option}")
        if not overwrite:
            raise InputError(f"{path}: already exists; choose another {option} or pass --overwrite")
    check_writable(path.parent)


def check_output_folder(option: str, folder: Path) -> None:
    """Raise InputError unless a command may write its files into a folder, which may exist; creates nothing."""
    kind = kind_of(folder)
    if kind not in (None, RUN):
        raise InputError(f"{option}: {folder} is the folder of a {kind}; choose another {option}")
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{option}: {folder} is a file; choose another {option}")
    check_writable(folder)


def check_new_folder(folder: Path) -> None:
    """Raise InputError if a folder that a command makes exists or cannot be created; creates nothing."""
    if folder.exists() or folder.is_symlink():
        raise InputError(f"{folder}: exists already; choose another name, or remove it first")
    check_writable(folder.parent)


def kind_of(folder: Path) -> str | None:
    """Return the kind of a folder, a key of MARKERS, or None for any other folder."""
    for kind, markers in MARKERS.items():
        if any(next(folder.glob(marker), None) for marker in markers):
            return kind
    return None


@contextmanager
def resumable_folder(output: Path, plan: dict[str, Any]) -> Iterator[Path]:
    """Yield a folder for the finished parts of the job that creates `output`.

    The folder is removed when the job is finished. If an earlier job was stopped or failed, its folder is reused if its
    plan is equal to `plan`; otherwise its content is removed, with a note. Everything in the folder must be written
    atomically (see atomic_files.py). Raises InUseError if another process runs the same job, SystemRefusedError and
    OSError if the folder cannot be written.
    """
    folder = output.with_name(f".{output.name}.work")
    with locked_name(output, f"{output}: is being written"):
        plan_text = json.dumps(plan, sort_keys=True, indent=1) + "\n"
        path = folder / PLAN_FILE
        if not path.is_file() or path.read_text() != plan_text:
            if path.is_file():
                print_note(f"{output}: starts anew; a stopped job had another text, version, options or memory")
            remove_folder(folder)
            folder.mkdir()
            write_atomically(path, plan_text)
        yield folder
        remove_folder(folder)
