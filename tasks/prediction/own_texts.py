"""Texts of a user, in a table or in JSON lines, as the examples of a task."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple, TypeAlias

from reader.errors import InputError
from tasks.data.examples import Example, Place
from tasks.layouts.columns import GOLD, Column, Columns, similar, single_columns
from tasks.layouts.json_lines import JsonLines
from tasks.layouts.lines import json_objects, read_lines
from tasks.layouts.rows import AnyRow, BadRow, Layout, Row
from tasks.layouts.tsv import Tsv
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
    In place of these names, keys and columns may be called as in the task's own files.

    Args:
        task: its labels are known.

    Raises InputError as `load_split` does, and for a file whose first row lacks a value.
    """
    roles = _known_roles(task)
    layout: Layout = _json_layout(path, roles) if path.suffix in JSON_SUFFIXES else _table_layout(path, roles)
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


def _known_roles(task: Task) -> Roles:
    """Return the values of a task's texts, those that are needed first, each with its column in the task's own files.

    Optional values that the task's own files do not have are left out, except IDs.
    """
    needed, optional = ROLES[task.kind]
    own: Columns | None = getattr(task.layout, "columns", None)
    used = (*needed, *(role for role in optional if own is None or role in own or role == "id"))
    roles: Roles = {role: (own or {}).get(role) for role in used if role not in GOLD}
    return {TEXT: None, **roles} if TOKENS in roles else roles


def _needed(roles: Roles, found: Container[str]) -> tuple[str, ...]:
    """Return the values that a file must have; a text may stand in place of tokens.

    IDs may be left out, and so may the question of a multiple choice, and a second text that the task's own files are
    not known to have.
    """
    if TOKENS in roles:
        return (TEXT,) if TEXT in found else (TOKENS,)
    optional = {"id", *(["question"] if "options" in roles else [])}
    return tuple(role for role, own in roles.items() if role not in optional and (role != "text_b" or own is not None))


def _present(roles: Roles, names: Container[str]) -> dict[str, Column]:
    """Return the column of each value that is among some names: by the value's name, or as the task's files call it."""
    found: dict[str, Column] = {}
    for role, own in roles.items():
        if role in names:
            found[role] = role
        elif own is not None and all(name in names for name in single_columns(own)):
            found[role] = own
    return found


def _called(role: str, roles: Roles) -> str:
    """Return what a value may be called, for errors."""
    names = [name for name in single_columns(roles[role] or role) if isinstance(name, str)]
    return " or ".join(dict.fromkeys(repr(name) for name in (role, *names)))


def _json_layout(path: Path, roles: Roles) -> JsonLines:
    place, first = next(json_objects(path), (None, None))
    if isinstance(first, BadRow) or first is None:
        raise InputError(f"{place}: {first.reason}" if first else f"{path}: is empty")
    found = _present(roles, first)
    for role in _needed(roles, found):
        if role not in found:
            also = " (or 'text')" if role == TOKENS else ""
            raise InputError(f"{place}: no key {_called(role, roles)}{also} in the object{similar(role, list(first))}")
    return JsonLines({role: column for role, column in found.items() if role != TOKENS or TEXT not in found})


def _table_layout(path: Path, roles: Roles) -> Tsv:
    if "options" in roles:
        raise InputError(f"{path}: options do not fit into a table; give JSON lines in a file that ends in .jsonl")
    roles = {role: own for role, own in roles.items() if role != TOKENS}
    place, first = next(read_lines(path), (None, None))
    if isinstance(first, BadRow) or first is None:
        raise InputError(f"{place}: {first.reason}" if first else f"{path}: is empty")
    fields = first.split("\t")
    found, needed = _present(roles, fields), _needed(roles, ())
    if {*needed} <= {*found}:
        return Tsv(found)
    names = [role for role in roles if role != "id"]
    tabs = ", with tabs between them" if len(names) > 1 else ""
    advice = f"give only {', '.join(names)}{tabs}, or name the columns in the first line"
    too_few = len(fields) < len(needed) and not found
    missing = needed[len(fields) :] if too_few else [role for role in needed if role not in found]
    if found or too_few or len(fields) > len(names):
        raise InputError(f"{place}: no column {_called(missing[0], roles)}; {advice}")
    names = names[: len(fields)]
    return Tsv({name: name for name in names}, header="no", names=tuple(names))
