"""Tab-separated files with named or numbered columns. A quotation mark has no meaning: fields hold single ones."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from reader.errors import InputError
from tasks.data.examples import Place
from tasks.layouts.columns import Columns, cleaned, column_positions, single_columns, value_of
from tasks.layouts.lines import read_lines
from tasks.layouts.rows import AnyRow, BadRow, OmittedRow, Row, Wanted


@dataclass(frozen=True)
class Tsv:
    """Tab-separated rows.

    Attributes:
        columns: the column of each value, by name or by number.
        header: whether the first line names the columns. With "auto" it does if it holds the names of the columns of
            all texts.
        names: the names of the columns of a file without header; None if `columns` has numbers only.
        list_separator: the character between the elements of a list value in one field.
        where: keep only rows with these values in these columns (XNLI's official file has 15 languages).
        omit_short_rows: leave out rows with too few fields, as baselines do for QQP, instead of calling them bad.
        clean: a change of the texts, see columns.CLEANERS.
    """

    columns: Columns
    header: Literal["yes", "no", "auto"] = "yes"
    names: tuple[str, ...] | None = None
    list_separator: str | None = None
    where: Mapping[str, str] = field(default_factory=dict)
    omit_short_rows: bool = False
    clean: str | None = None

    def rows(self, files: Sequence[Path], wanted: Wanted) -> Iterator[AnyRow]:
        """Yield the rows of each file; raises InputError for a file without the columns."""
        for path in files:
            yield from self._file_rows(path, wanted)

    def _file_rows(self, path: Path, wanted: Wanted) -> Iterator[AnyRow]:
        lines = read_lines(path)
        first = next(lines, None)
        if first is None:
            raise InputError(f"{path}: is empty")
        place, line = first
        if isinstance(line, BadRow):
            raise InputError(f"{place}: {line.reason}")
        has_header = self._is_header(line.split("\t"), wanted)
        header = line.split("\t") if has_header else self.names
        positions = column_positions(self.columns, header, path, wanted)
        conditions = column_positions({name: name for name in self.where}, header, path, Wanted(labelled=True))
        for place, line in lines if has_header else itertools.chain([first], lines):
            if isinstance(line, BadRow):
                yield line
                continue
            fields = line.split("\t")
            if header is not None and len(fields) > len(header):
                yield BadRow(place, f"{len(fields)} fields instead of {len(header)}; is there a tab inside a text?")
            else:
                yield self._row(place, fields, positions, conditions, wanted)

    def _is_header(self, fields: list[str], wanted: Wanted) -> bool:
        if self.header == "auto":
            roles = ((wanted.role(name), column) for name, column in self.columns.items())
            required = (column for role, column in roles if not (role.is_gold or role.may_lack))
            return {name for column in required for name in single_columns(column)} <= set(fields)
        return self.header == "yes"

    def _row(
        self,
        place: Place,
        fields: list[str],
        positions: Mapping[str, list[int]],
        conditions: Mapping[str, list[int]],
        wanted: Wanted,
    ) -> AnyRow:
        needed = 1 + max(position for of_role in (*positions.values(), *conditions.values()) for position in of_role)
        is_blank = not "".join(fields).strip()
        if len(fields) < needed or is_blank:
            reason = "a blank line" if is_blank else f"too few fields: {len(fields)} instead of at least {needed}"
            return OmittedRow(place, "too few fields") if self.omit_short_rows else BadRow(place, reason)
        for column, [position] in conditions.items():
            if fields[position] != self.where[column]:
                return OmittedRow(place, f"{column} is not {self.where[column]}")
        values = {
            role: value_of(wanted.role(role), [fields[position] for position in of_role], self.list_separator)
            for role, of_role in positions.items()
        }
        return Row(place, cleaned(values, self.clean))
