"""What a layout yields: rows of values that are not yet checked, and rows that it could not read.

The kind of a task says which values its rows have (see Kind.roles). Layouts of a single kind may give further ones:

- multiple_choice: group, blank;
- tagging: a text in place of tokens, and entities (lists of type, first character, end (exclusive), surface) in place
  of tags.

All offsets count characters (Unicode code points), and all ends are exclusive.
"""

from __future__ import annotations

import html
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

from reader.errors import InputError


class Place(NamedTuple):
    """Where a row is, for errors: a file, a line counted from 1 if the file has lines, and a part of the file."""

    file: Path
    line: int | None = None
    part: str = ""

    def __str__(self) -> str:
        line = "" if self.line is None else f":{self.line}"
        return f"{self.file}{line}{', ' * bool(self.part)}{self.part}"


class Role(NamedTuple):
    """A value of a row.

    name: of the value; needed: whether a task must say in which column it is; is_gold: whether it is, or belongs to,
    the gold value; is_list: whether it is a list of texts; may_lack: whether a file need not have its column.
    """

    name: str
    needed: bool = True
    is_gold: bool = False
    is_list: bool = False
    may_lack: bool = False


ID = Role("id", needed=False, may_lack=True)


# The roles by name of the values that are to be read from a file; those of gold values only if the file has them.
Wanted: TypeAlias = Mapping[str, Role]


@dataclass(frozen=True)
class Row:
    """Values that should make one example, and their place."""

    place: Place
    values: Mapping[str, Any]


class BadRow(InputError):
    """The row is not as the layout or the task requires. Layouts that go on with the next row yield it.

    Attributes:
        reason: a clause that continues `file:line: `; place: of the row, None until `made` has set it.
    """

    def __init__(self, reason: str, place: Place | None = None) -> None:
        super().__init__(reason)
        self.reason, self.place = reason, place

    def __str__(self) -> str:
        return f"{self.place}: {super().__str__()}" if self.place else super().__str__()


class OmittedRow(BadRow):
    """A row of valid form that the task leaves out on purpose, as the official baselines do."""


AnyRow: TypeAlias = Row | BadRow
ItemT = TypeVar("ItemT")
MadeT = TypeVar("MadeT")


# What code raises that takes values out of JSON of another form.
FORM_ERRORS = (AttributeError, LookupError, OverflowError, TypeError, ValueError)


def made(place: Place, make: Callable[..., MadeT], *arguments: Any) -> MadeT | BadRow:
    """Return make(*arguments), or the BadRow that it raises; its place is `place` unless it names another one."""
    try:
        return make(*arguments)
    except BadRow as error:
        error.place, error.__cause__, error.__context__ = error.place or place, None, None
        return error.with_traceback(None)  # frames hold whole records, and the row may be kept


def rows_of(
    items: Iterable[tuple[Place, ItemT | BadRow]], values: Callable[[ItemT], Mapping[str, Any]]
) -> Iterator[AnyRow]:
    """Yield a row for each item of a file. `values` returns the values of an item, or raises BadRow.

    A key or a form that `values` expects, and that is not there, makes a bad row.
    """
    for place, item in items:
        try:
            found = item if isinstance(item, BadRow) else made(place, values, item)
        except FORM_ERRORS as error:
            found = BadRow(_other_form(error), place)
        yield found if isinstance(found, BadRow) else Row(place, found)


def nested(path: Path, items: Iterable[ItemT]) -> Iterator[ItemT]:
    """Yield items that are taken out of the JSON of a whole file; raises InputError if its form is another one."""
    try:
        yield from items
    except FORM_ERRORS as error:
        raise InputError(f"{path}: {_other_form(error)}") from error


def _other_form(error: Exception) -> str:
    return f"no {error}" if isinstance(error, KeyError) else f"not in the form of this layout: {error}"


class Layout(ABC):
    """A form of files."""

    def rows(self, files: Sequence[Path], wanted: Wanted) -> Iterator[AnyRow]:
        """Yield every row of the files, in order.

        Args:
            files: files or folders, as the layout requires.
            wanted: the values that are to be read from them.

        Raises InputError if a file as a whole is not as the layout requires.
        """
        for path in files:
            yield from rows_of(nested(path, self.items(path, wanted)), lambda record: self.values(record, wanted))

    @abstractmethod
    def items(self, path: Path, wanted: Wanted) -> Iterator[tuple[Place, Any]]:
        """Yield the place of each row of a file, and what makes its values, or a bad row."""

    @abstractmethod
    def values(self, record: Any, wanted: Wanted) -> Mapping[str, Any]:
        """Return the values of a row by name; raises BadRow."""


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


Cleaner: TypeAlias = Literal["br_to_space", "repair_entities"]
CLEANERS: dict[Cleaner, Callable[[str], str]] = {"br_to_space": br_to_space, "repair_entities": repair_entities}


def single_columns(column: Column) -> tuple[str | int, ...]:
    """Return the single columns of a value."""
    return column if isinstance(column, tuple) else (column,)


def value_of(role: Role, parts: Sequence[Any], list_separator: str | None = None) -> Any:
    """Return the value of some fields of a table, or of some keys of an object: a list for a role that is a list.

    A single field or key is given as it is also for a list, because only the kind of task knows whether one is enough;
    but a list of texts, and several texts, are joined to one text for other roles. Empty texts at the end of a list are
    left out, all but the first: a row may have fewer values than others.
    """
    first = parts[0]
    if len(parts) == 1 and (role.is_list or role.is_gold or not isinstance(first, list)):
        return first.split(list_separator) if role.is_list and list_separator is not None else first
    if role.is_list:
        return list(parts[: max((i for i, part in enumerate(parts, start=1) if part != ""), default=1)])
    texts = first if len(parts) == 1 else parts
    return " ".join(text for text in texts if text) if all(isinstance(text, str) for text in texts) else texts


def cleaned(values: Mapping[str, Any], cleaner: Cleaner | None) -> dict[str, Any]:
    """Return values with texts that the named cleaner has changed; see CLEANERS."""
    if cleaner is None:
        return dict(values)
    clean = CLEANERS[cleaner]
    return {
        role: clean(value) if role in ("text_a", "text_b") and isinstance(value, str) else value
        for role, value in values.items()
    }
