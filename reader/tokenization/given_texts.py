"""Texts that a caller or a file gives: one check for every function and command that takes them.

A text is a string that holds a word and can be written as UTF-8. Errors count the items of a list as Python does, from
0 and in brackets (`texts[0]`), and everything in words as people do, from 1 (`line 1`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from reader.errors import InputError, quoted
from reader.tokenization.basic_tokenizer import has_words


def text_fault(value: Any, may_be_empty: bool = False) -> str | None:
    """Return what is wrong with a text, as a clause that follows its name; None if nothing is."""
    if not isinstance(value, str):
        return "is missing" if value is None else f"is not a text but {quoted(value)}"
    try:
        value.encode()
    except UnicodeEncodeError as error:
        return f"is not UTF-8: it has half a character (a lone surrogate) at position {error.start}"
    return None if may_be_empty or has_words(value) else "is empty"


def check_text(value: Any, name: str, may_be_empty: bool = False) -> None:
    """Raise InputError, which begins with `name`, unless a value is a text."""
    if fault := text_fault(value, may_be_empty):
        raise InputError(f"{name} {fault}")


def is_table(value: object) -> bool:
    """Return whether a value is a DataFrame, of pandas or another library: a list of it would have its column names."""
    return hasattr(value, "columns") and hasattr(value, "to_dict")


def column_names(table: Any) -> str:
    """Return the names of the columns of a DataFrame, for errors."""
    return ", ".join(map(str, table.columns)) or "none"


def listed(values: Any, name: str) -> list[Any]:
    """Return the items of a list, an array, a column or an iterator.

    Raises InputError, which begins with `name` and says what to give, for anything else, such as a single text, a dict,
    bytes, a path or a DataFrame.
    """
    if isinstance(values, str | bytes | bytearray | Mapping) or not isinstance(values, Iterable) or is_table(values):
        raise InputError(f"{name}: give a list, not {quoted(values)}")
    return list(values)


def listed_strings(values: Any, name: str) -> list[str]:
    """Return a list of strings, which may be empty; raises InputError that names the item, or as `listed`."""
    items = listed(values, name)
    for i, item in enumerate(items):
        if not isinstance(item, str):
            raise InputError(f"{name}[{i}] {text_fault(item)}")
    return items
