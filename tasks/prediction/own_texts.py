"""Texts of a user as the examples of a task: read like the task's own files, as plain lines, or as JSON lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from reader.errors import InputError
from tasks.data.examples import TaggingExample
from tasks.layouts.chid import Chid
from tasks.layouts.cluener import Cluener
from tasks.layouts.cluewsc import CluewscMarked
from tasks.layouts.columns import GOLD, single_columns
from tasks.layouts.csv_table import Csv
from tasks.layouts.json_lines import JsonLines
from tasks.layouts.lines import UnreadableError
from tasks.layouts.rows import Layout
from tasks.layouts.text_or_tokens import TextOrTokens
from tasks.layouts.tsv import Tsv
from tasks.reading.load import Examples, OnBadRow, load_split
from tasks.registry.task import TRAIN, Source, Split, Task
from tasks.registry.task_file import LAYOUTS, ROLES

Form: TypeAlias = Literal["task", "lines", "json"]
FORMS: tuple[Form, ...] = get_args(Form)
SPLIT = "input"


def load_texts(task: Task, path: Path, form: Form, on_bad_row: OnBadRow) -> Examples:
    """Read texts as examples without gold values.

    Args:
        task: its labels are known.
        form: "task": `path` is a file or folder as the task's own layout has it; gold values may be there or not.
            "lines": one row a line, with a tab between two values. "json": JSON lines whose keys are the names of the
            values (see layouts/rows.py). IDs are in a column or key `id`, except in "lines".

    Raises InputError as `load_split` does, which also says what is expected.
    """
    if not path.exists():
        raise InputError(f"{path}: no such file or folder")
    values = plain_values(task)
    layout = task_layout(task) if form == "task" else plain_layout(task, values, form)
    splits = {TRAIN: task.splits[TRAIN], SPLIT: Split((Source((path.name,), layout),), labelled=False)}
    try:
        loaded = load_split(replace(task, splits=splits, folders=()), path.parent, SPLIT, on_bad_row)
        _check_separated(loaded, layout, path)
    except UnreadableError:
        raise
    except InputError as error:
        expected = _own_form(layout) if form == "task" else f"--layout {form} expects {_plain_form(values, form)}"
        raise InputError(f"{error}; {expected}") from error
    return loaded


def task_layout(task: Task) -> Layout:
    """Return the layout of the task's files without gold values; a column or key `id` has the IDs, if it is there."""
    sources = (source for name in task.submission_splits for source in task.splits[name].sources)
    layout = next((source.layout for source in sources if source.layout), task.layout)
    if isinstance(layout, JsonLines) or (isinstance(layout, (Tsv, Csv)) and layout.header != "no"):
        return replace(layout, columns={"id": "id", **layout.columns})
    return layout


def plain_values(task: Task) -> list[str]:
    """Return the names of the values of a row without gold values and ID, in the order of a line.

    Layouts without columns hold single texts, and questions.
    """
    needed, optional = ROLES[task.kind]
    own = getattr(task.layout, "columns", {"question": "question"})
    used = ({*needed} | {*optional} & {*own}) - GOLD - {"id"}
    return [name for name in ("text_a", "text_b", "context", "question", "options", "tokens") if name in used]


def plain_layout(task: Task, values: Sequence[str], form: Form) -> Layout:
    """Return the layout of plain lines or JSON lines; raises InputError if the task's texts do not fit into them."""
    if isinstance(task.layout, (Chid, CluewscMarked)):
        raise InputError(
            f"--layout: {form} cannot mark a blank or a pronoun; {task.title} needs the form of its own files"
        )
    clean: str | None = getattr(task.layout, "clean", None)
    if form == "json" and "tokens" in values:
        return TextOrTokens(_text_role(task))
    if form == "json":
        return JsonLines({name: name for name in ("id", *values)}, clean)
    if "options" in values:
        raise InputError("--layout: options do not fit into lines; give --layout json")
    names = tuple(_text_role(task) if name == "tokens" else name for name in values)
    return Tsv({name: name for name in names}, header="no", names=names, clean=clean)


def _text_role(task: Task) -> str:
    """Return what a text without tokens is: one of which the characters, or the words, are the tokens."""
    return "text" if task.language == "zh" or isinstance(task.layout, Cluener) else "sentence"


def _check_separated(loaded: Examples, layout: Layout, path: Path) -> None:
    """Raise InputError if no text of a table of tokens has two of them: each text would be a single token."""
    separator = getattr(layout, "list_separator", None)
    tagged = [example for example in loaded.examples if isinstance(example, TaggingExample)]
    if separator is not None and tagged and all(len(example.tokens) == 1 for example in tagged):
        raise InputError(f"{path}: no line has {separator!r} between tokens")


def _own_form(layout: Layout) -> str:
    """Return what a file of the task's own form has, for errors."""
    name = next(name for name, (of_layout, _) in LAYOUTS.items() if isinstance(layout, of_layout))
    columns = {role: column for role, column in getattr(layout, "columns", {}).items() if role not in GOLD | {"id"}}
    shown = [f"{role} in {' and '.join(map(str, single_columns(column)))}" for role, column in columns.items()]
    with_columns = f" with {', '.join(shown)}" if shown else ""
    return f"expected files like the task's own: layout {name}{with_columns}; for other forms see --layout"


def _plain_form(values: Sequence[str], form: Form) -> str:
    if form == "json":
        return f"objects with {', '.join(values)}{' or text' * ('tokens' in values)}"
    names = " and ".join("text" if name == "tokens" else name for name in values)
    return f"{names} on each line{', with a tab between them' * (len(values) > 1)}"
