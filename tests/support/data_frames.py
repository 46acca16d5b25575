"""Tables as pandas has them, for tests of functions that a user may give one; pandas' own if it is installed."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import Any


class Frame:
    """A table: its columns by name. Like pandas' DataFrame, it yields the names of its columns."""

    def __init__(self, columns: dict[str, list[Any]]) -> None:
        self._columns, self.columns = columns, list(columns)

    def __getitem__(self, name: str) -> list[Any]:
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def to_dict(self) -> dict[str, list[Any]]:
        return self._columns


FRAMES: list[Any] = [Frame, *([import_module("pandas").DataFrame] if find_spec("pandas") else [])]
