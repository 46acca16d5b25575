"""CLUENER: one JSON object a line, a text with entities by type and surface."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasks.data.examples import Place
from tasks.layouts.lines import json_objects
from tasks.layouts.rows import AnyRow, BadRow, Row, Wanted


@dataclass(frozen=True)
class Cluener:
    """Objects with `text`, and `label`: type > surface > list of [first, last] characters, **last inclusive**."""

    def rows(self, files: Sequence[Path], wanted: Wanted) -> Iterator[AnyRow]:
        """Yield the texts of each file."""
        for path in files:
            for place, record in json_objects(path):
                yield record if isinstance(record, BadRow) else _row(place, record, wanted.labelled)


def _row(place: Place, record: Mapping[str, Any], labelled: bool) -> AnyRow:
    if "text" not in record:
        return BadRow(place, "no 'text'")
    values = {"text": record["text"], **({"id": record["id"]} if "id" in record else {})}
    if not labelled:
        return Row(place, values)
    try:
        entities = [
            (entity_type, int(first), int(last) + 1, surface)
            for entity_type, surfaces in record["label"].items()
            for surface, spans in surfaces.items()
            for first, last in spans
        ]
    except (KeyError, AttributeError, TypeError, ValueError, OverflowError):
        return BadRow(place, "'label' is not of the form {type: {text: [[first, last], ...]}}")
    return Row(place, {**values, "entities": entities})
