"""Columns or keys of values, and changes of texts: what tables and JSON lines have in common."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

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
    `&lt;`, and `\` in place of line breaks. Numbers from 128 to 159 are characters of code page 1252, as in HTML.
    """
    text = text.replace("\\", " ")
    text = re.sub(r" ?&?#(\d{2,5});", lambda match: html.unescape(f"&#{match[1]};"), text)
    for name, character in (("quot", '"'), ("amp", "&"), ("lt", "<"), ("gt", ">"), ("nbsp", " ")):
        text = re.sub(rf"&{name};| {name};", character, text)
    return text


CLEANERS: dict[str, Callable[[str], str]] = {"br_to_space": br_to_space, "repair_entities": repair_entities}


def single_columns(column: Column) -> tuple[str | int, ...]:
    """Return the single columns of a value."""
    return column if isinstance(column, tuple) else (column,)


def cleaned(values: Mapping[str, Any], cleaner: str | None) -> dict[str, Any]:
    """Return values with texts that the named cleaner has changed; see CLEANERS."""
    if cleaner is None:
        return dict(values)
    clean = CLEANERS[cleaner]
    return {
        role: clean(value) if role in ("text_a", "text_b") and isinstance(value, str) else value
        for role, value in values.items()
    }
