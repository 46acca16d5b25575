"""Comma-separated files with quoted fields, as RFC 4180 describes them (AG News)."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from reader.errors import InputError
from tasks.data.examples import Place
from tasks.layouts.columns import Columns, cleaned, column_positions, value_of
from tasks.layouts.lines import read_text
from tasks.layouts.rows import AnyRow, BadRow, Row, Wanted


@dataclass(frozen=True)
class Csv:
    """Comma-separated rows; a field in double quotes may hold commas, line breaks and doubled quotes.

    Attributes:
        columns: the column of each value, by name (with a header) or by number.
        header: whether the first line names the columns.
        clean: a change of the texts, see columns.CLEANERS.
    """

    columns: Columns
    header: Literal["yes", "no"] = "yes"
    clean: str | None = None

    def __post_init__(self) -> None:
        """Raises InputError for the header of Tsv that this layout does not have."""
        if self.header not in ("yes", "no"):
            raise InputError(f"header: expected yes or no, found {self.header!r}, which is for the layout tsv")

    def rows(self, files: Sequence[Path], wanted: Wanted) -> Iterator[AnyRow]:
        """Yield the rows of each file; raises InputError for a file without the columns."""
        for path in files:
            yield from self._file_rows(path, wanted)

    def _file_rows(self, path: Path, wanted: Wanted) -> Iterator[AnyRow]:
        records = _records(path)
        header = _header(path, records) if self.header == "yes" else None
        positions = column_positions(self.columns, header, path, wanted)
        needed = 1 + max(position for of_role in positions.values() for position in of_role)
        for place, record in records:
            if isinstance(record, BadRow):
                yield record
            elif len(record) < needed:
                yield BadRow(place, f"too few fields: {len(record)} instead of at least {needed}")
            else:
                values = {
                    role: value_of(wanted.role(role), [record[position] for position in of_role], None)
                    for role, of_role in positions.items()
                }
                yield Row(place, cleaned(values, self.clean))


def _header(path: Path, records: Iterator[tuple[Place, list[str] | BadRow]]) -> list[str]:
    _, first = next(records, (None, BadRow(Place(path), "the file is empty")))
    if isinstance(first, BadRow):
        raise InputError(f"{path}:1: no header: {first.reason}")
    return first


def _records(path: Path) -> Iterator[tuple[Place, list[str] | BadRow]]:
    """Yield the fields of each record with the line on which it begins. Blank lines at the end are left out."""
    records = csv.reader(io.StringIO(read_text(path).rstrip("\r\n"), newline=""), strict=True)
    while True:
        place = Place(path, records.line_num + 1)
        try:
            record = next(records, None)
        except csv.Error as error:
            yield place, BadRow(place, f"not CSV: {error}; quote the field and double each quotation mark inside it")
            continue
        if record is None:
            return
        yield place, record if record else BadRow(place, "a blank line")
