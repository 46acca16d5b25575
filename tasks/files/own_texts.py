"""Texts of a user as the examples of a task: read like the task's own files, as plain lines, or as JSON lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast, get_args

from reader.errors import InputError
from reader.tokenization.given_texts import column_names
from tasks.files.official import Examples, OnBadRow, read_rows
from tasks.kinds.base import Example
from tasks.kinds.catalog import KINDS
from tasks.kinds.checked_values import Reading
from tasks.kinds.tagging import TaggingExample
from tasks.kinds.task import Task
from tasks.layouts.benchmarks import Chid, CluewscMarked
from tasks.layouts.lines import JsonLines, ObjectLines
from tasks.layouts.rows import AnyRow, BadRow, Cleaner, Layout, Place, Wanted, rows_of
from tasks.layouts.tables import Delimited, Tsv

Form: TypeAlias = Literal["task", "lines", "json"]
FORMS: tuple[Form, ...] = get_args(Form)
SPLIT = "input"


@dataclass(frozen=True)
class OwnObjects(JsonLines):
    """JSON objects of a user. A value that the kind of task knows, but that this task does not have, is an error.

    If there is a key `text`, each has the list `tokens` or a `text` without tokens.
    """

    def values(self, record: Mapping[str, Any], wanted: Wanted) -> Mapping[str, Any]:
        """Return the values under the keys."""
        for name in wanted:
            if record.get(name) is not None and name not in self.columns:
                raise BadRow(f"the rows of this task have no {name}; remove it")
        if "text" not in self.columns:
            return super().values(record, wanted)
        if ("tokens" in record) == ("text" in record):
            raise BadRow("expected either the key 'tokens' or the key 'text' in the object")
        return {key: record[key] for key in self.columns if key in record}


def load_texts(task: Task, path: Path, form: Form, on_bad_row: OnBadRow) -> Examples:
    """Read texts as examples without gold values.

    Args:
        task: a task whose labels are known.
        form: "task": `path` is a file or folder in the task's own layout, with or without gold values. "lines": one row
            a line, with a tab between two values. "json": JSON lines whose keys are the names of the values (see
            layouts/rows.py). IDs are in a column or key `id`, except in "lines".

    Raises InputError as `load_split` does.
    """
    if not path.exists():
        raise InputError(f"{path}: no such file or folder")
    layout = task_layout(task) if form == "task" else plain_layout(task, plain_values(task), form)
    loaded = _read(layout.rows([path], KINDS[task.kind].wanted(labelled=False)), path, task, on_bad_row)
    separator = getattr(layout, "list_separator", None)
    if separator is not None and KINDS[task.kind].splits_texts:
        _check_separated(cast(list[TaggingExample], loaded.examples), task.language == "zh", separator)
    return loaded


def examples_of(task: Task, records: Iterable[tuple[Place, Mapping[str, Any]]]) -> list[Example]:
    """Return values by name, as an object of JSON lines has them, as examples; raises InputError with the place."""
    layout, wanted = plain_layout(task, plain_values(task), "json"), KINDS[task.kind].wanted(labelled=False)
    assert isinstance(layout, ObjectLines)
    rows = rows_of(records, lambda record: layout.values(record, wanted))
    return _read(rows, Path(SPLIT), task, None).examples


def _read(rows: Iterable[AnyRow], path: Path, task: Task, on_bad_row: OnBadRow | None) -> Examples:
    return read_rows(rows, (path,), SPLIT, Reading(task, labelled=False, training=False, own=True), on_bad_row)


def task_layout(task: Task) -> Layout:
    """Return the layout of the task's files without gold values. A column or key `id`, if there is one, has the IDs."""
    sources = (source for name in task.submission_splits for source in task.splits[name].sources)
    layout = next((source.layout for source in sources if source.layout), task.layout)
    if isinstance(layout, Delimited):
        # A short row of the user's is a bad row, which is named.
        layout = replace(layout, omit_short_rows=False)
    if isinstance(layout, JsonLines | Delimited):
        return replace(layout, columns={"id": "id", **layout.columns})
    return layout


def plain_values(task: Task) -> list[str]:
    """Return the names of the values of a row without gold values and ID, in the order of a line.

    Layouts without columns have single texts; for multiple choice, they also have questions.
    """
    own = getattr(task.layout, "columns", {"question": "question"})
    roles = (role for role in KINDS[task.kind].roles if not role.is_gold and role.name != "id")
    return [role.name for role in roles if role.needed or role.name in own]


def table_rows(table: Any, task: Task) -> list[dict[str, Any]]:
    """Return the rows of a DataFrame: the values and, if there is one, the ID of each, by name.

    A column has the name of the value, or that of the column in the task's own files. Raises InputError that says what
    to write if a value has no column, or several.
    """
    given, own = list(table.columns), getattr(task.layout, "columns", {})
    values = [name if name != "tokens" or name in given else "text" for name in plain_values(task)]
    columns: dict[str, Any] = {}
    for name in [*values, "id"]:
        column = next((column for column in (name, own.get(name)) if given.count(column) == 1), None)
        if column is not None:
            columns[name] = table[column]
        elif name != "id":
            shown = f"the columns {column_names(table)}; the task needs one column {name}"
            raise InputError(f"a DataFrame with {shown}: rename yours, as in df.rename(columns={{'review': {name!r}}})")
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def plain_layout(task: Task, values: Sequence[str], form: Form) -> Layout:
    """Return the layout of plain lines or JSON lines; raises InputError if the task's texts do not fit into them."""
    if isinstance(task.layout, (Chid, CluewscMarked)):
        raise InputError(
            f"--layout: {form} cannot mark a blank or a pronoun; {task.title} needs the form of its own files"
        )
    clean: Cleaner | None = getattr(task.layout, "clean", None)
    kind = KINDS[task.kind]
    if form == "json":
        names = ("id", *values, *["text"] * kind.splits_texts)
        return OwnObjects({name: name for name in names}, clean)
    names = tuple("text" if kind.splits_texts and name == "tokens" else name for name in values)
    for name in names:
        if kind.wanted(labelled=False)[name].is_list:
            raise InputError(f"--layout: {name} do not fit into lines; give --layout json")
    return Tsv({name: name for name in names}, header="no", names=names, clean=clean)


def _check_separated(examples: Sequence[TaggingExample], is_chinese: bool, separator: str) -> None:
    """Raise InputError with the line of a text if each row of a table of tokens is a single one, and some are texts."""
    if all(len(example.tokens) == 1 for example in examples):
        for example in examples:
            if len(example.tokens[0].split()) > 1 or (is_chinese and len(example.tokens[0]) > 1):
                raise InputError(f"{example.place}: no {separator!r} between tokens, nor in any other row")
