"""Texts of a user, in a table or in JSON lines, as the examples of a task."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from reader.errors import InputError
from tasks.data.examples import Example, Place
from tasks.layouts.chid import BLANK, OTHER_BLANK, Chid, blank_of
from tasks.layouts.cluewsc import CluewscMarked, is_marked
from tasks.layouts.columns import GOLD, Column, Columns, similar, single_columns
from tasks.layouts.dureader_documents import DuReaderDocuments
from tasks.layouts.json_lines import JsonLines
from tasks.layouts.lines import json_objects, read_lines
from tasks.layouts.rows import AnyRow, BadRow, Layout, Row
from tasks.layouts.tsv import Tsv
from tasks.reading.checked_values import RowError
from tasks.reading.load import OnBadRow, Report, load_split
from tasks.registry.task import TRAIN, Source, Split, Task
from tasks.registry.task_file import ROLES

SPLIT = "input"
JSON_SUFFIXES = (".jsonl", ".json")
# A text that is to be tagged may be given without tokens. English words and punctuation marks are then tokens.
TEXT, TOKENS = "text", "tokens"
# The values that texts consist of, each with its column in the task's own files, if that is known.
Roles: TypeAlias = dict[str, Column | None]
WORDS = re.compile(r"\w+|[^\w\s]")
# Layouts of JSON lines that make more of an object than its values, with the keys by which such an object is known.
OWN_KEYS: dict[type, tuple[str, ...]] = {
    Chid: ("content", "candidates"),
    CluewscMarked: ("text", "target"),
    DuReaderDocuments: ("question_id", "question", "documents"),
}


class OwnTexts(NamedTuple):
    """Examples without gold values, the account of their rows, and the texts that were split into words, by place."""

    examples: list[Example]
    report: Report
    texts: Mapping[Place, str]


def load_texts(task: Task, path: Path, on_bad_row: OnBadRow) -> OwnTexts:
    """Read the texts of a file as examples without gold values.

    A file that ends in .jsonl or .json has one object a line, with the task's values as keys: text_a (and text_b);
    context, question and options; context and question; tokens, or text; and `id`, if there are IDs. Any other file is
    a table with tabs between columns. Its first line may have these names; otherwise the columns are in this order.
    In place of these names, keys and columns may be called as in the task's own files; tokens and options may then be
    in a table as well. Objects may also be those of the task's own files. Texts are changed as those files are, and if
    the task marks parts of its texts, the texts must have the marks.

    Args:
        task: its labels are known.

    Raises InputError as `load_split` does, and for a file whose first row lacks a value.
    """
    roles = _known_roles(task)
    layout = _json_layout(task, path, roles) if path.suffix in JSON_SUFFIXES else _table_layout(task, path, roles)
    marks = MARKS.get(type(task.layout))
    if marks is not None and layout is not task.layout:
        layout = MarkedTexts(layout, marks)
    texts: dict[Place, str] = {}
    if task.kind == "tagging" and task.language == "en":
        layout = SplitTexts(layout, texts)
    splits = {TRAIN: task.splits[TRAIN], SPLIT: Split((Source((path.name,), layout),), labelled=False)}
    loaded = load_split(replace(task, splits=splits, folders=()), path.parent, SPLIT, on_bad_row)
    return OwnTexts(*loaded, texts)


def words_of(text: str) -> list[str]:
    """Return the words and the punctuation marks of a text."""
    return WORDS.findall(text)


@dataclass(frozen=True)
class SplitTexts:
    """Rows of another layout, with the words of a text in place of the text.

    Attributes:
        texts: the texts that were read are put here, by place.
    """

    layout: Layout
    texts: dict[Place, str]

    def rows(self, files: Sequence[Path], labelled: bool) -> Iterator[AnyRow]:
        """Yield the rows of the files."""
        for row in self.layout.rows(files, labelled):
            if isinstance(row, Row) and isinstance(text := row.values.get(TEXT), str):
                self.texts[row.place] = text
                values = {role: value for role, value in row.values.items() if role != TEXT}
                yield Row(row.place, values | {TOKENS: words_of(text)})
            else:
                yield row


@dataclass(frozen=True)
class MarkedTexts:
    """Rows of another layout whose texts must be marked as the task marks its own.

    Attributes:
        check: returns the values of a row with what follows from the marks; raises RowError without the marks.
    """

    layout: Layout
    check: Callable[[Mapping[str, Any]], Mapping[str, Any]]

    def rows(self, files: Sequence[Path], labelled: bool) -> Iterator[AnyRow]:
        """Yield the rows of the files."""
        for row in self.layout.rows(files, labelled):
            yield self._checked(row) if isinstance(row, Row) else row

    def _checked(self, row: Row) -> Row | BadRow:
        try:
            return Row(row.place, self.check(row.values))
        except RowError as error:
            return BadRow(row.place, str(error))


def _with_blank(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the values of a question with the blank of its context, which the options fill (ChID)."""
    context = values.get("context")
    blank = blank_of(context) if isinstance(context, str) else None
    if blank is None:
        raise RowError(f"the context must have one blank, marked {BLANK!r}; write {OTHER_BLANK!r} for others")
    return {**values, "blank": blank}


def _with_marks(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the values of a text if its noun phrase and its pronoun are marked (CLUEWSC2020)."""
    text = values.get("text_a")
    if not isinstance(text, str) or not is_marked(text):
        raise RowError("text_a must have its noun phrase and its pronoun marked as '_phrase_' and '[pronoun]'")
    return values


MARKS: dict[type, Callable[[Mapping[str, Any]], Mapping[str, Any]]] = {Chid: _with_blank, CluewscMarked: _with_marks}


def _known_roles(task: Task) -> Roles:
    """Return the values of a task's texts, those that are needed first, each with its column in the task's own files.

    Optional values that the task's own files do not have are left out, except IDs. Layouts without columns hold single
    texts; their multiple choices have questions, except ChID's.
    """
    needed, optional = ROLES[task.kind]
    columns: Columns | None = getattr(task.layout, "columns", None)
    no_columns: Columns = {} if isinstance(task.layout, Chid) else {"question": "question"}
    own = no_columns if columns is None else columns
    used = (*needed, *(role for role in optional if role in own or role == "id"))
    roles: Roles = {role: own.get(role) for role in used if role not in GOLD}
    return {TEXT: None, **roles} if TOKENS in roles else roles


def _needed(roles: Roles, found: Container[str]) -> tuple[str, ...]:
    """Return the values that a file must have; a text may stand in place of tokens.

    IDs may be left out, and so may the question of a multiple choice.
    """
    if TOKENS in roles:
        return (TEXT,) if TEXT in found else (TOKENS,)
    optional = {"id", *(["question"] if "options" in roles else [])}
    return tuple(role for role in roles if role not in optional)


def _by_role(roles: Roles, names: Container[str]) -> dict[str, Column]:
    """Return the values that are called by their own name among some names."""
    return {role: role for role in roles if role in names}


def _as_own(roles: Roles, names: Container[str]) -> dict[str, Column]:
    """Return the column of each value that is among some names as the task's files call it."""
    own = {role: column for role, column in roles.items() if column is not None}
    return {role: column for role, column in own.items() if all(name in names for name in single_columns(column))}


def _as_training(roles: Roles, names: Container[str]) -> dict[str, Column] | None:
    """Return the column of each value if all that are needed are called as in the task's own files, else None.

    Such a file is read as in training, also if a column of the task has the name of another value.
    """
    own = _as_own(roles, names)
    if not {*_needed(roles, own)} <= {*own}:
        return None
    return {role: column for role, column in (_by_role(roles, names) | own).items() if role != TEXT}


def _called(role: str, roles: Roles) -> str:
    """Return what a value may be called, for errors."""
    names = [name for name in single_columns(roles[role] or role) if isinstance(name, str)]
    return " or ".join(dict.fromkeys(repr(name) for name in (role, *names)))


def _json_layout(task: Task, path: Path, roles: Roles) -> Layout:
    place, first = next(json_objects(path), (None, None))
    if isinstance(first, BadRow) or first is None:
        raise InputError(f"{place}: {first.reason}" if first else f"{path}: is empty")
    own_keys = OWN_KEYS.get(type(task.layout), ())
    if own_keys and {*own_keys} <= {*first}:
        return task.layout
    clean: str | None = getattr(task.layout, "clean", None)
    if roles.get(TOKENS) == TEXT and isinstance(first.get(TEXT), str):
        # A text without tokens, under the key that tokens have in the task's own files.
        roles = {**roles, TOKENS: None}
    found = _as_training(roles, first)
    if found is not None:
        return JsonLines(found, clean)
    found = _as_own(roles, first) | _by_role(roles, first)
    for role in _needed(roles, found):
        if role not in found:
            others = (TEXT,) if role == TOKENS else own_keys
            also = f" (or {' and '.join(map(repr, others))})" if others else ""
            raise InputError(f"{place}: no key {_called(role, roles)}{also} in the object{similar(role, list(first))}")
    return JsonLines({role: column for role, column in found.items() if role != TOKENS or TEXT not in found}, clean)


def _table_layout(task: Task, path: Path, roles: Roles) -> Tsv:
    place, first = next(read_lines(path), (None, None))
    if isinstance(first, BadRow) or first is None:
        raise InputError(f"{place}: {first.reason}" if first else f"{path}: is empty")
    fields = first.split("\t")
    clean: str | None = getattr(task.layout, "clean", None)
    as_training = _as_training(roles, fields) if isinstance(task.layout, Tsv) else None
    if isinstance(task.layout, Tsv) and as_training is not None:
        separator = task.layout.list_separator
        if TOKENS in as_training and separator is not None:
            _check_separated(path, separator)
        return Tsv(as_training, list_separator=separator, clean=clean)
    if "options" in roles:
        raise InputError(f"{path}: options do not fit into a table; give JSON lines in a file that ends in .jsonl")
    roles = {role: own for role, own in roles.items() if role != TOKENS}
    found, needed = _as_own(roles, fields) | _by_role(roles, fields), _needed(roles, ())
    if {*needed} <= {*found}:
        return Tsv(found, clean=clean)
    names = [role for role in roles if role != "id"]
    tabs = ", with tabs between them" if len(names) > 1 else ""
    advice = f"give only {', '.join(names)}{tabs}, or name the columns in the first line"
    too_few = len(fields) < len(needed) and not found
    missing = needed[len(fields) :] if too_few else [role for role in needed if role not in found]
    if found or too_few or len(fields) > len(names):
        raise InputError(f"{place}: no column {_called(missing[0], roles)}; {advice}")
    names = names[: len(fields)]
    return Tsv({name: name for name in names}, header="no", names=tuple(names), clean=clean)


def _check_separated(path: Path, separator: str) -> None:
    """Raise InputError if no line has two tokens: each text would be a single token."""
    if not any(isinstance(line, str) and separator in line for _, line in read_lines(path)):
        raise InputError(
            f"{path}: the first line names a column of tokens, but no line has {separator!r} between tokens; "
            "leave out the first line if the others are texts"
        )
