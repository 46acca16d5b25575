"""The layout of a file with a user's texts: which column or key has which value, by the first line."""

from __future__ import annotations

from collections.abc import Container
from pathlib import Path
from typing import TypeAlias

from reader.errors import InputError
from tasks.layouts.chid import Chid
from tasks.layouts.cluewsc import CluewscMarked
from tasks.layouts.columns import GOLD, Column, Columns, similar, single_columns
from tasks.layouts.dureader_documents import DuReaderDocuments
from tasks.layouts.json_lines import JsonLines
from tasks.layouts.lines import json_objects, read_lines
from tasks.layouts.rows import BadRow, Layout
from tasks.layouts.tsv import Tsv
from tasks.prediction.own_rows import TEXT, TOKENS
from tasks.registry.task import Task
from tasks.registry.task_file import ROLES

# The values that texts consist of, each with its column in the task's own files, if that is known.
Roles: TypeAlias = dict[str, Column | None]
# Layouts of JSON lines that make more of an object than its values, with the keys by which such an object is known.
OWN_KEYS: dict[type, tuple[str, ...]] = {
    Chid: ("content", "candidates"),
    CluewscMarked: ("text", "target"),
    DuReaderDocuments: ("question_id", "question", "documents"),
}


def known_roles(task: Task) -> Roles:
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


def json_layout(task: Task, path: Path, roles: Roles) -> Layout:
    """Return the layout of JSON lines, by the keys of the first object.

    Raises InputError that names file and line if the object lacks a value.
    """
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


def table_layout(task: Task, path: Path, roles: Roles) -> Tsv:
    """Return the layout of a table, by its first line, which may name the columns.

    Raises InputError that names file and line if a value has no column.
    """
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
        short = task.layout.omit_short_rows
        return Tsv(as_training, list_separator=separator, omit_short_rows=short, clean=clean)
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
