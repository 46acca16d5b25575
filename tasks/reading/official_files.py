"""Find the official files of a split in the folder that the user gives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from ernie_gram.config.checks import require
from reader.errors import InputError, similar
from reader.system.atomic_files import sha256_of
from tasks.kinds.task import Split, Task
from tasks.layouts.rows import Layout


class Found(NamedTuple):
    """Files of a split, and the layout that reads them."""

    files: tuple[Path, ...]
    layout: Layout


def split_named(task: Task, name: str) -> Split:
    """Return a split of a task; raises InputError, with the splits that it has, for an unknown name."""
    if name not in task.splits:
        known = ", ".join(task.splits)
        raise InputError(f"the task {task.name} has no split {name!r}; it has: {known}{similar(name, task.splits)}")
    return task.splits[name]


def labelled_split(task: Task, name: str | None) -> str:
    """Return the name of a split with labels, by default the first dev split; raises InputError if it has none."""
    chosen, known = name or task.tuning_split or "", task.evaluation_splits
    require(chosen in known, "--split", f"must be one of: {', '.join(known) or 'the task has none'}")
    return chosen


def find_files(task: Task, folder: Path, split: str) -> Found:
    """Return the files of a split, which are searched for in `folder` and in the task's own folders below it.

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
                return Found(paths, source.layout or task.layout)
            if len(missing) < len(paths):
                incomplete.append(f"{missing[0]} is missing beside {paths[0].name}")
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; give the folder with the files of {task.title}")
    names = ", or ".join(" and ".join(source.files) for source in sources)
    also = f" (also looked in its folders {', '.join(task.folders)})" if task.folders else ""
    found = f"; {incomplete[0]}" if incomplete else ""
    raise InputError(f"{folder}: no files of the split {split!r} of {task.title}; looked for {names}{also}{found}")


def file_digests(files: Iterable[Path]) -> Iterator[tuple[str, str]]:
    """Yield the SHA-256 of each file, and of each text in a folder, with the text's path in the folder or else "".

    The folder of a text may be its label.
    """
    for path in files:
        for file in sorted(path.rglob("*.txt")) if path.is_dir() else [path]:
            yield str(file.relative_to(path)) if path.is_dir() else "", sha256_of(file)


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
