"""Texts of a user, in a table or in JSON lines, as the examples of a task."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from reader.errors import InputError
from tasks.data.examples import Example, Place
from tasks.layouts.columns import GOLD, similar
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


def _known_roles(task: Task) -> list[str]:
    """Return the names of the values of a task's texts, those that are needed first."""
    needed, optional = ROLES[task.kind]
    return [role for role in (*needed, *optional) if role not in GOLD]


def _needed(roles: list[str], found: Sequence[str]) -> tuple[str, ...]:
    """Return the values that a file must have: all but ID, question and second text; a text in place of tokens."""
    if TOKENS in roles:
        return (TEXT,) if TEXT in found else (TOKENS,)
    return tuple(
        role for role in roles if role not in ("id", "text_b") and (role != "question" or "options" not in roles)
    )


def _json_layout(path: Path, roles: list[str]) -> JsonLines:
    place, first = next(json_objects(path), (None, None))
    if isinstance(first, BadRow) or first is None:
        raise InputError(f"{place}: {first.reason}" if first else f"{path}: is empty")
    found = [key for key in (*roles, TEXT) if key in first and (key != TEXT or TOKENS in roles)]
    needed = _needed(roles, found)
    missing = next((role for role in needed if role not in found), None)
    if missing is not None:
        also = " (or 'text')" if missing == TOKENS else ""
        raise InputError(f"{place}: no key {missing!r}{also} in the object{similar(missing, list(first))}")
    used = [key for key in found if key != TOKENS or TOKENS in needed]
    return JsonLines({role: role for role in dict.fromkeys((*needed, *used))})


def _table_layout(path: Path, roles: list[str]) -> Tsv:
    if "options" in roles:
        raise InputError(f"{path}: options do not fit into a table; give JSON lines in a file that ends in .jsonl")
    columns = [TEXT] if TOKENS in roles else [role for role in roles if role != "id"]
    place, first = next(read_lines(path), (None, None))
    if isinstance(first, BadRow) or first is None:
        raise InputError(f"{place}: {first.reason}" if first else f"{path}: is empty")
    fields = first.split("\t")
    header = {*_needed(roles, [TEXT])} <= {*fields}
    names = [name for name in (*columns, "id") if name in fields] if header else columns[: len(fields)]
    missing = [name for name in _needed(roles, [TEXT]) if name not in names]
    if missing:
        raise InputError(f"{place}: no column {missing[0]!r}; the columns are {', '.join(columns)}, with tabs between")
    columns_of: dict[str, Any] = {name: name for name in names}
    return Tsv(columns_of, header="yes" if header else "no", names=None if header else tuple(names))
