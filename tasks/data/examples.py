"""What the examples of all kinds of tasks share.

All offsets count characters (Unicode code points), and all ends are exclusive. A field that holds the gold value is
None in a file without labels, such as the test files of GLUE and CLUE.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple, Protocol


class Place(NamedTuple):
    """Where a row is, for errors: a file, a line counted from 1 if the file has lines, and a part of the file."""

    file: Path
    line: int | None = None
    part: str = ""

    def __str__(self) -> str:
        line = "" if self.line is None else f":{self.line}"
        return f"{self.file}{line}{', ' * bool(self.part)}{self.part}"


class Example(Protocol):
    """An example of any kind.

    Attributes:
        id: unique within its file; the row's number, counted from 0, if the file has no IDs.
        place: the file and line.
    """

    @property
    def id(self) -> str: ...

    @property
    def place(self) -> Place: ...


def json_id(example: Example) -> int | str:
    """Return the ID of an example as JSON files of benchmarks have it: a number if it is written like one."""
    key = example.id
    return int(key) if re.fullmatch("0|[1-9][0-9]{0,17}", key) else key


class CharSpan(NamedTuple):
    """The characters [start, end) of a text."""

    start: int
    end: int


def locate(text: str, context: str, start: int) -> int | None:
    """Return where `text` occurs in `context`: at `start`, else nearest to it; None if it does not occur.

    Of two equally near occurrences the first is returned. A `start` of -1 means that the position is unknown (CMRC,
    DuReader); the first occurrence is then the nearest.
    """
    if start >= 0 and context.startswith(text, start):
        return start
    before = context.rfind(text, 0, max(0, start) + len(text))
    after = context.find(text, max(0, start))
    found = [position for position in (before, after) if position >= 0]
    return min(found, key=lambda position: abs(position - start), default=None)
