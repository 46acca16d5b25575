"""The official files of a task: the options that give their folder, and the files of a split in it."""

from __future__ import annotations

import argparse
import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

from ernie_gram.config.checks import require
from reader.errors import InputError, similar
from reader.system.atomic_files import sha256_of
from tasks.kinds.task import Split, Task
from tasks.layouts.rows import Layout

VARIABLE = "DATA"
FILES = "folder with the official files of a task, or the benchmark's folder above it"
MEANING = f"{FILES} (default: {VARIABLE})"


def split_named(task: Task, name: str) -> Split:
    """Return a split of a task; raises InputError, with the splits that it has, for an unknown name."""
    if name not in task.splits:
        known = ", ".join(task.splits)
        raise InputError(f"the task {task.name} has no split {name!r}; it has: {known}{similar(name, task.splits)}")
    return task.splits[name]


def labelled_split(task: Task, name: str | None) -> str:
    """Return the name of a split with labels, by default the first dev split; raises InputError if it has none."""
    known = task.evaluation_splits
    chosen = name or min(known, key=lambda each: not each.startswith("dev"), default="")
    require(chosen in known, "--split", f"must be one of: {', '.join(known) or 'the task has none'}")
    return chosen


def find_files(task: Task, folder: Path, split: str) -> tuple[tuple[Path, ...], Layout]:
    """Return the files of a split, and the layout that reads them.

    They are searched for in `folder` and in the task's own folders below it.

    Raises InputError that names the folders and the official names if no source of the split is complete.
    """
    sources = split_named(task, split).sources
    folders = [folder, *(folder / name for name in task.folders)]
    incomplete = []
    for source in sources:
        for place in folders:
            paths = tuple(place / name for name in source.files)
            missing = [path for path in paths if not path.exists()]
            if not missing:
                return paths, source.layout or task.layout
            if len(missing) < len(paths):
                incomplete.append(f"{missing[0]} is missing beside {paths[0].name}")
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; give the folder with the files of {task.title}")
    names = ", or ".join(" and ".join(source.files) for source in sources)
    also = f" (also looked in its folders {', '.join(task.folders)})" if task.folders else ""
    found = f"; {incomplete[0]}" if incomplete else ""
    raise InputError(f"{folder}: no files of the split {split!r} of {task.title}; looked for {names}{also}{found}")


def digest_of_files(files: Iterable[Path]) -> str:
    """Return the SHA-256 of the contents of some files, and of the texts in folders, whose folders may be labels."""
    digest = hashlib.sha256()
    for path in files:
        for file in sorted(path.rglob("*.txt")) if path.is_dir() else [path]:
            inside = str(file.relative_to(path)) if path.is_dir() else ""
            digest.update(f"{inside} {sha256_of(file)}\n".encode())
    return digest.hexdigest()


def available_splits(task: Task, folder: Path) -> list[str]:
    """Return the splits of a task whose files are all in a folder; raises InputError if a needed one is missing."""

    def is_there(split: str) -> bool:
        try:
            find_files(task, folder, split)
        except InputError:
            if task.splits[split].needed:
                raise
            return False
        return True

    return [split for split in task.splits if is_there(split)]


def add_data_option(parser: argparse.ArgumentParser, is_required: bool = False) -> None:
    """Add --data. Its default is the environment variable DATA; if `is_required`, one of them must be given."""
    folder = data_folder()
    required = is_required and folder is None
    parser.add_argument("--data", type=Path, default=folder, required=required, metavar="FOLDER", help=MEANING)


def add_bad_row_option(parser: argparse.ArgumentParser) -> None:
    """Add --on_bad_row."""
    parser.add_argument(
        "--on_bad_row",
        choices=("error", "skip"),
        default="error",
        help="stop at the first bad row, or leave bad rows out and list them (%(default)s)",
    )


def data_folder() -> Path | None:
    """Return the folder that the environment variable DATA names; None if it is not set."""
    text = os.environ.get(VARIABLE)
    return Path(text) if text else None
