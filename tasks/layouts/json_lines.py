"""Files with one JSON object a line (CLUE)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reader.text.nested_keys import value_at
from tasks.data.examples import Place
from tasks.layouts.columns import Columns, cleaned, similar, single_columns
from tasks.layouts.lines import json_objects
from tasks.layouts.rows import AnyRow, BadRow, Row, Wanted

MISSING = object()


@dataclass(frozen=True)
class JsonLines:
    """JSON objects, one a line.

    Attributes:
        columns: the key of each value; `doc.body` is the key `body` of the object under `doc`. A list of texts under
            the key of a text is joined by spaces (CSL's keywords).
        clean: a change of the texts, see columns.CLEANERS.
    """

    columns: Columns
    clean: str | None = None

    def rows(self, files: Sequence[Path], wanted: Wanted) -> Iterator[AnyRow]:
        """Yield the rows of each file."""
        for path in files:
            for place, record in json_objects(path):
                yield record if isinstance(record, BadRow) else self._row(place, record, wanted)

    def _row(self, place: Place, record: Mapping[str, Any], wanted: Wanted) -> AnyRow:
        values: dict[str, Any] = {}
        for name, column in self.columns.items():
            role = wanted.role(name)
            if role.is_gold and not wanted.labelled:
                continue
            keys = [str(key) for key in single_columns(column)]
            found = [value_at(record, key, MISSING) for key in keys]
            missing = next((key for key, value in zip(keys, found, strict=True) if value is MISSING), None)
            if missing is None:
                values[name] = _joined(found) if not role.is_list else found if len(found) > 1 else found[0]
            elif not role.may_lack:
                return BadRow(place, f"no key {missing!r} in the object{similar(missing, list(record))}")
        return Row(place, cleaned(values, self.clean))


def _joined(found: list[Any]) -> Any:
    """Return a single value as it is, and several texts, or a list of texts, as one text."""
    texts = found[0] if len(found) == 1 and isinstance(found[0], list) else found
    if len(texts) == 1 and texts is found:
        return found[0]
    return " ".join(text for text in texts if text) if all(isinstance(text, str) for text in texts) else texts
