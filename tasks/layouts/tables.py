"""Files of columns with names or numbers: tab-separated and comma-separated tables, and a token on each line."""

from __future__ import annotations

import csv
import io
import itertools
import re
import sys
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeAlias

from reader.errors import InputError, similar
from tasks.layouts.lines import read_lines, read_text
from tasks.layouts.rows import (
    BadRow,
    Cleaner,
    Columns,
    Layout,
    OmittedRow,
    Place,
    Wanted,
    cleaned,
    single_columns,
    value_of,
)

Record: TypeAlias = tuple[Place, list[str] | BadRow]
DOCUMENT_START = "-DOCSTART-"


@dataclass(frozen=True)
class Delimited(Layout):
    """Rows of fields.

    Attributes:
        columns: the column of each value, by name or by number.
        header: whether the first line names the columns. With "auto" it does if it holds the names of the columns of
            all texts.
        names: the names of the columns of a file without header; None if `columns` has numbers only.
        list_separator: the character between the elements of a list value in one field.
        where: keep only rows with these values in these columns (XNLI's official file has 15 languages).
        omit_short_rows: leave out rows with too few fields, as baselines do for QQP, instead of calling them bad.
        clean: a change of the texts, see rows.CLEANERS.
    """

    separator: ClassVar[str]
    columns: Columns
    header: Literal["yes", "no", "auto"] = "yes"
    names: tuple[str, ...] | None = None
    list_separator: str | None = None
    where: Mapping[str | int, str] = field(default_factory=dict)
    omit_short_rows: bool = False
    clean: Cleaner | None = None

    def __post_init__(self) -> None:
        """Raise InputError if both `names` and a header name the columns, and for a column 0."""
        if self.names and self.header == "yes":
            raise InputError("names: are those of a file without a header; give header: no, or auto")
        columns = (each for column in (*self.columns.values(), *self.where) for each in single_columns(column))
        if any(isinstance(column, int) and column < 1 for column in columns):
            raise InputError("columns: give names, or numbers counted from 1")

    @abstractmethod
    def records(self, path: Path) -> Iterator[Record]:
        """Yield the fields of each row of a file; blank lines at the end are left out."""

    def items(self, path: Path, wanted: Wanted) -> Iterator[tuple[Place, Any]]:
        """Yield the fields of each row, and where its values are; raises InputError for a file without the columns."""
        records = self.records(path)
        first = next(records, None)
        if first is None:
            raise InputError(f"{path}: is empty")
        fields = first[1]
        if isinstance(fields, BadRow) and self.header != "no":
            raise fields
        has_header = not isinstance(fields, BadRow) and self._is_header(fields, wanted)
        header: Sequence[str] | None = fields if has_header else self.names  # type: ignore[assignment]
        positions = column_positions(self.columns, header, path, wanted)
        conditions = {_position(column, header, path): (column, value) for column, value in self.where.items()}
        needed = 1 + max(itertools.chain(*positions.values(), conditions))
        for place, record in records if has_header else itertools.chain([first], records):
            yield place, record if isinstance(record, BadRow) else (record, header, positions, conditions, needed)

    def values(self, record: tuple[Any, ...], wanted: Wanted) -> Mapping[str, Any]:
        """Return the values of a row."""
        fields, header, positions, conditions, needed = record
        if header is not None and len(fields) > len(header):
            hint = f"is there a {self.separator} inside a text?"
            raise BadRow(f"{len(fields)} fields instead of {len(header)}; {hint}")
        is_blank = not "".join(fields).strip()
        if len(fields) < needed or is_blank:
            if self.omit_short_rows:
                raise OmittedRow("too few fields")
            too_few = f"too few fields: {len(fields)} instead of at least {needed}"
            raise BadRow("a blank line" if is_blank else too_few)
        for position, (column, value) in conditions.items():
            if fields[position] != value:
                raise OmittedRow(f"column {column} is not {value}")
        found = {
            role: value_of(wanted[role], [fields[position] for position in of_role], self.list_separator)
            for role, of_role in positions.items()
        }
        return cleaned(found, self.clean)

    def _is_header(self, fields: list[str], wanted: Wanted) -> bool:
        if self.header == "auto":
            roles = ((wanted[name], column) for name, column in self.columns.items() if name in wanted)
            required = (column for role, column in roles if not (role.is_gold or role.may_lack))
            return {name for column in required for name in single_columns(column)} <= set(fields)
        return self.header == "yes"


@dataclass(frozen=True)
class Tsv(Delimited):
    """Tab-separated rows. A quotation mark has no meaning: fields hold single ones."""

    separator = "tab"

    def records(self, path: Path) -> Iterator[Record]:
        """Yield the fields of each line."""
        for place, line in read_lines(path):
            yield place, line if isinstance(line, BadRow) else line.split("\t")


@dataclass(frozen=True)
class Csv(Delimited):
    """Comma-separated rows, as RFC 4180 describes them (AG News).

    A field in double quotes may hold commas, line breaks and doubled quotes.
    """

    separator = "comma"

    def records(self, path: Path) -> Iterator[Record]:
        """Yield the fields of each record with the line on which it begins.

        Raises InputError for text that is not CSV: it is not known where the next record begins.
        """
        csv.field_size_limit(sys.maxsize)  # a text may be longer than Python's limit
        records = csv.reader(io.StringIO(read_text(path).rstrip("\r\n"), newline=""), strict=True)
        place = Place(path, 1)
        try:
            for record in records:
                yield place, record
                place = Place(path, records.line_num + 1)
        except csv.Error as error:
            advice = "quote the field and double each quotation mark inside it"
            raise InputError(f"{place}: not CSV: {error}; {advice}") from error


def column_positions(
    columns: Columns, header: Sequence[str] | None, path: Path, wanted: Wanted
) -> dict[str, list[int]]:
    """Return the positions, counted from 0, of the columns of each value in rows of a table.

    Only the wanted values are read. Those that a file may lack are left out if there is no such name in the header, or
    no header and the value's own name. Raises InputError for other columns that are not there.
    """
    positions: dict[str, list[int]] = {}
    for role, column in columns.items():
        names = single_columns(column)
        lacks = column == role if header is None else any(isinstance(key, str) and key not in header for key in names)
        if role in wanted and not (wanted[role].may_lack and lacks):
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
    if list(header).count(column) > 1:
        raise InputError(f"{path}:1: the header has the column {column!r} more than once; give its number")
    return list(header).index(column)


@dataclass(frozen=True)
class Conll(Layout):
    """Lines of fields between spaces or tabs; a row is a sentence, and a blank line ends it (CoNLL-2003).

    The first field of a line is a token, and the last one its tag. Document marks (-DOCSTART-) are no sentences.
    """

    def items(self, path: Path, wanted: Wanted) -> Iterator[tuple[Place, Any]]:
        """Yield the lines of each sentence."""
        groups = itertools.groupby(read_lines(path), _is_of_sentence)
        sentences = (list(lines) for is_sentence, lines in groups if is_sentence)
        return ((lines[0][0], lines) for lines in sentences)

    def values(self, record: Sequence[tuple[Place, str | BadRow]], wanted: Wanted) -> Mapping[str, Any]:
        """Return the tokens, and the tags."""
        tokens: list[tuple[str, str]] = []
        for place, line in record:
            if isinstance(line, BadRow):
                raise BadRow(f"a sentence with a bad line {place.line}: {line.reason}")
            # Not str.split(): a token may be an ideographic space.
            fields = re.split("[ \t]+", line.strip(" \t"))
            if len(fields) < 2 and "tags" in wanted:
                raise BadRow(f"a sentence with a bad line {place.line}: no tag in {line[:40]!r}")
            tokens.append((fields[0], fields[-1]))
        names = ("tokens", "tags") if "tags" in wanted else ("tokens",)
        return dict(zip(names, map(list, zip(*tokens, strict=True)), strict=False))


def _is_of_sentence(placed: tuple[Place, str | BadRow]) -> bool:
    line = placed[1]
    return isinstance(line, BadRow) or (bool(line.strip(" \t")) and not line.startswith(DOCUMENT_START))
