"""Values by column: what TSV, CSV and JSON-lines files have in common."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from reader.errors import InputError
from tasks.layouts.rows import Role, Wanted

# The name of a column, or its number counted from 1. Several columns of a list value are its elements; several columns
# of a text are joined by spaces.
Column: TypeAlias = str | int | tuple[str | int, ...]
Columns: TypeAlias = Mapping[str, Column]


def br_to_space(text: str) -> str:
    """Return a text with a space in place of each HTML line break `<br />` (IMDb)."""
    return re.sub(r"<br\s*/?>", " ", text, flags=re.IGNORECASE)


def repair_entities(text: str) -> str:
    r"""Return a text with the broken entities and line breaks of AG News repaired.

    The files hold entities without ampersand, such as ` #39;` for an apostrophe and ` quot;`, entities in full, such as
    `&lt;`, and `\` in place of line breaks.
    """
    text = text.replace("\\", " ")
    text = re.sub(r" ?&?#(\d{2,5});", lambda match: chr(int(match[1])), text)
    for name, character in (("quot", '"'), ("amp", "&"), ("lt", "<"), ("gt", ">"), ("nbsp", " ")):
        text = re.sub(rf"&{name};| {name};", character, text)
    return text


CLEANERS: dict[str, Callable[[str], str]] = {"br_to_space": br_to_space, "repair_entities": repair_entities}


def similar(name: str, known: Collection[str]) -> str:
    """Return `; did you mean ...?` with the most similar known name, or "" if none is similar."""
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f"; did you mean {near[0]}?" if near else ""


def single_columns(column: Column) -> tuple[str | int, ...]:
    """Return the single columns of a value."""
    return column if isinstance(column, tuple) else (column,)


def column_positions(
    columns: Columns, header: Sequence[str] | None, path: Path, wanted: Wanted
) -> dict[str, list[int]]:
    """Return the positions, counted from 0, of the columns of each value in rows of a table.

    Columns of gold values are left out without labels. Values that a file may lack
    are left out if the header does not have them.
    Raises InputError for a column that the header does not have.
    """
    positions: dict[str, list[int]] = {}
    for role, column in columns.items():
        if wanted.role(role).is_gold and not wanted.labelled:
            continue
        names = single_columns(column)
        if (
            wanted.role(role).may_lack
            and header is not None
            and not {name for name in names if isinstance(name, str)} <= {*header}
        ):
            continue
        positions[role] = [_position(name, header, path) for name in names]
    return positions


def _position(column: str | int, header: Sequence[str] | None, path: Path) -> int:
    if isinstance(column, int):
        return column - 1
    if header is None:
        raise InputError(f"{path}: the column {column!r} has a name, but the file has no header; give its number")
    if column not in header:
        shown = ", ".join(header)
        raise InputError(
            f"{path}:1: no column {column!r} in the header; it has: {shown[:200]}{similar(column, header)}"
        )
    return list(header).index(column)


def value_of(role: Role, parts: Sequence[str], list_separator: str | None) -> str | list[str]:
    """Return the value of some fields of a table: a list for a role that is a list, else a text."""
    if not role.is_list:
        return " ".join(part for part in parts if part) if len(parts) > 1 else parts[0]
    if len(parts) == 1 and list_separator is not None:
        return parts[0].split(list_separator)
    return list(parts)


def cleaned(values: Mapping[str, Any], cleaner: str | None) -> dict[str, Any]:
    """Return values with texts that the named cleaner has changed; see CLEANERS."""
    if cleaner is None:
        return dict(values)
    clean = CLEANERS[cleaner]
    return {
        role: clean(value) if role in ("text_a", "text_b") and isinstance(value, str) else value
        for role, value in values.items()
    }
