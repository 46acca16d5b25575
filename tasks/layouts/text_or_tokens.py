"""JSON lines to be tagged that are no task's own files: tokens, or texts without tokens."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasks.data.examples import Place
from tasks.layouts.lines import json_objects
from tasks.layouts.rows import AnyRow, BadRow, Row, Wanted


@dataclass(frozen=True)
class TextOrTokens:
    """JSON objects, one a line, each with the list `tokens` or with a `text` without tokens.

    Attributes:
        text_role: which value of a row the text is.
    """

    text_role: str

    def rows(self, files: Sequence[Path], wanted: Wanted) -> Iterator[AnyRow]:
        """Yield the rows of each file; no gold values are read."""
        for path in files:
            for place, record in json_objects(path):
                yield record if isinstance(record, BadRow) else self._row(place, record)

    def _row(self, place: Place, record: Mapping[str, Any]) -> AnyRow:
        if ("tokens" in record) == ("text" in record):
            return BadRow(place, "expected either the key 'tokens' or the key 'text' in the object")
        roles = {"id": "id", "tokens": "tokens", "text": self.text_role}
        return Row(place, {role: record[key] for key, role in roles.items() if key in record})
