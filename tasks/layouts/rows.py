"""What a layout yields: rows of values that are not yet checked, and rows that it could not read.

The kind of a task says which values its rows have (see Kind.roles). Layouts of a single kind may give further ones:

- multiple_choice: group, blank;
- tagging: a text in place of tokens, and entities (lists of type, first character, end (exclusive), surface) in place
  of tags.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

from tasks.data.examples import Place


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


@dataclass(frozen=True)
class Wanted:
    """What is to be read from a file.

    Attributes:
        labelled: whether the file has gold values; otherwise none are read.
        roles: the roles of the values, by name.
    """

    labelled: bool
    roles: Mapping[str, Role] = field(default_factory=dict)

    def role(self, name: str) -> Role:
        """Return the role of a value; a value without one is a needed text."""
        return self.roles.get(name) or Role(name)


class RowError(Exception):
    """The row cannot become an example; the message says why."""


class OmittedError(Exception):
    """The task leaves out this row on purpose; the message says why."""


@dataclass(frozen=True)
class Row:
    """Values that should make one example, and their place."""

    place: Place
    values: Mapping[str, Any]


class BadRow(NamedTuple):
    """A row that is not as the layout or the task requires. The reason is a clause that continues `file:line: `."""

    place: Place
    reason: str


class OmittedRow(NamedTuple):
    """A row of valid form that the task leaves out on purpose, as the official baselines do."""

    place: Place
    reason: str


AnyRow: TypeAlias = Row | BadRow | OmittedRow
ItemT = TypeVar("ItemT")
MadeT = TypeVar("MadeT")


def made(place: Place, make: Callable[..., MadeT], *arguments: Any) -> MadeT | BadRow | OmittedRow:
    """Return make(*arguments), or a BadRow or OmittedRow at `place` if it raises RowError or OmittedError."""
    try:
        return make(*arguments)
    except RowError as error:
        return BadRow(place, str(error))
    except OmittedError as error:
        return OmittedRow(place, str(error))


def rows_of(
    items: Iterable[tuple[Place, ItemT | BadRow]], values: Callable[[ItemT], Mapping[str, Any]]
) -> Iterator[AnyRow]:
    """Yield a row for each item of a file; `values` returns its values, or raises RowError or OmittedError."""
    for place, item in items:
        found = item if isinstance(item, BadRow) else made(place, values, item)
        yield found if isinstance(found, (BadRow, OmittedRow)) else Row(place, found)


class Layout(Protocol):
    """A form of files."""

    def rows(self, files: Sequence[Path], wanted: Wanted) -> Iterator[AnyRow]:
        """Yield every row of the files, in order.

        Args:
            files: files or folders, as the layout requires.
            wanted: what is to be read from them.

        Raises InputError if a file as a whole is not as the layout requires.
        """
        ...
