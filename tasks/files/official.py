"""The official files of a task: the options that give their folder, the files of a split, and its rows as examples.

Every row is accounted for.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from ernie_gram.config import require
from reader.errors import InputError, counted
from reader.system.atomic_files import sha256_of
from reader.system.progress import progress
from tasks.kinds.base import Example
from tasks.kinds.catalog import KINDS, checked
from tasks.kinds.checked_values import Reading
from tasks.kinds.task import TRAIN, Task
from tasks.layouts.rows import AnyRow, BadRow, Layout, OmittedRow, Place, Row, made

VARIABLE = "DATA"
FILES = "folder with the official files of a task, or the benchmark's folder above it"
MEANING = f"{FILES} (default: {VARIABLE})"


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
    sources = task.splits[split].sources
    folders = [folder, *(folder / name for name in task.folders)]
    for source in sources:
        for place in folders:
            paths = tuple(place / name for name in source.files)
            if all(path.exists() for path in paths):
                return paths, source.layout or task.layout
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; give the folder with the files of {task.title}")
    names = ", or ".join(" and ".join(source.files) for source in sources)
    also = f" (also looked in its folders {', '.join(task.folders)})" if task.folders else ""
    raise InputError(f"{folder}: no files of the split {split!r} of {task.title}; looked for {names}{also}")


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
    there = []
    for name, split in task.splits.items():
        with nullcontext() if split.needed else suppress(InputError):
            find_files(task, folder, name)
            there.append(name)
    return there


def add_data_option(parser: argparse.ArgumentParser) -> None:
    """Add --data, which must be given unless the environment variable DATA is set."""
    folder = data_folder()
    parser.add_argument("--data", type=Path, default=folder, required=folder is None, metavar="FOLDER", help=MEANING)


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


OnBadRow: TypeAlias = Literal["error", "skip"]


@dataclasses.dataclass(frozen=True)
class Report:
    """The account of the rows of a split: `rows` = `examples` + omitted + bad.

    A row is what makes one example: a line, a question, a blank, a sentence, or a file.

    Attributes:
        files: what was read.
        omitted: rows that the task leaves out on purpose, as the official baselines do.
        bad: rows that were skipped because something is wrong with them (`on_bad_row="skip"`).
        notes: see Reading.
    """

    task: str
    split: str
    files: tuple[Path, ...]
    rows: int
    examples: int
    omitted: tuple[BadRow, ...]
    bad: tuple[BadRow, ...]
    notes: Mapping[str, int]

    def lines(self, limit: int | None = None) -> list[str]:
        """Return the account as lines of text: the counts, the reasons, and each bad row, at most `limit` of them."""
        files = ", ".join(map(str, self.files))
        lines = [f"{self.task} {self.split}: rows {self.rows}, examples {self.examples} ({files})"]
        lines += [
            f"  left out {count}: {reason}" for reason, count in Counter(row.reason for row in self.omitted).items()
        ]
        lines += [f"  noted {count}: {what}" for what, count in self.notes.items()]
        if self.bad:
            lines.append(f"  bad rows skipped {len(self.bad)}:")
            lines += [f"    {row}" for row in self.bad[:limit]]
            hidden = len(self.bad) - len(self.bad[:limit])
            lines += [f"    and {hidden} more"] if hidden else []
        return lines


class Examples(NamedTuple):
    """The examples of a split in the order of its files, and the account of its rows."""

    examples: list[Example]
    report: Report


def load_split(task: Task, folder: Path, split: str, on_bad_row: OnBadRow = "error") -> Examples:
    """Read a split of a task from the folder with its official files.

    Args:
        task: a task of the registry or a custom task, with its labels (see `with_labels`) unless the split is `train`.
        on_bad_row: "error" stops at the first bad row; "skip" leaves bad rows out and lists them in the report.

    Raises InputError that names file and line for a bad row, and for files that are missing, that are not in the task's
    layout, or that have no rows.
    """
    reading = Reading(task, labelled=task.splits[split].labelled, training=split == TRAIN)
    files, layout = find_files(task, folder, split)
    rows = layout.rows(files, KINDS[task.kind].wanted(reading.labelled))
    return read_rows(rows, files, split, reading, on_bad_row)


def read_rows(
    rows: Iterable[AnyRow], files: tuple[Path, ...], split: str, reading: Reading, on_bad_row: OnBadRow | None
) -> Examples:
    """Return the examples of rows, and the account of them; raises InputError as `load_split` does.

    Args:
        files: what the rows come from, for the account.
        split: the name of the split, for the account.
        reading: what is known of the rows; its task must have its labels unless a model is trained on them.
        on_bad_row: None is "error" without advice on options.
    """
    task, examples = reading.task, list[Example]()
    omitted, bad = list[BadRow](), list[BadRow]()
    first_places: dict[str, Place] = {}
    count, read_example = 0, KINDS[task.kind].read_example
    with progress(f"reading {files[0]}", unit=" rows") as bar:
        for row in rows:
            made_row: Example | BadRow
            made_row = made(row.place, read_example, row, str(count), reading) if isinstance(row, Row) else row
            count += 1
            bar.update(1)
            # IDs must be unique, because predictions are scored and submitted by ID; training does not need them.
            if not reading.training and not isinstance(made_row, BadRow):
                earlier = first_places.setdefault(made_row.id, made_row.place)
                if earlier is not made_row.place:
                    made_row = BadRow(f"the id {made_row.id!r} is not unique; it is also at {earlier}", made_row.place)
            if isinstance(made_row, OmittedRow):
                omitted.append(made_row)
            elif not isinstance(made_row, BadRow):
                examples.append(made_row)
            elif on_bad_row == "skip":
                bad.append(made_row)
            else:
                advice = "; correct the row, or leave bad rows out with --on_bad_row skip" if on_bad_row else ""
                raise InputError(f"{made_row}{advice}")
    report = Report(task.name, split, files, count, len(examples), tuple(omitted), tuple(bad), dict(reading.notes))
    if not examples:
        first = f"; the first one is at {bad[0]}" if bad else ""
        raise InputError(f"{files[0]}: no example of {task.title} in {counted(count, 'row')}{first}")
    return Examples(examples, report)


def with_labels(task: Task, folder: Path, on_bad_row: OnBadRow = "error") -> Task:
    """Return a task with the labels of its training file if it has none of its own.

    The labels are sorted, as numbers if all are whole numbers. Raises InputError as `load_split` does.
    """
    if not KINDS[task.kind].needs_labels(task):
        return task
    return labelled_by(task, load_split(task, folder, TRAIN, on_bad_row).examples)


def labelled_by(task: Task, examples: Iterable[Example]) -> Task:
    """Return a task with the labels of its training examples, as `with_labels` does."""
    kind = KINDS[task.kind]
    if not kind.needs_labels(task):
        return task
    found = {label for example in examples for label in kind.labels_of(example)}
    are_numbers = all(label.isdecimal() for label in found)
    # Equal numbers, such as 1 and 01, are sorted as texts.
    labels = tuple(sorted(found, key=lambda label: (int(label) if are_numbers else 0, label)))
    return checked(dataclasses.replace(task, labels=labels, labels_of="those of the training file"))
