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
        return Row(place, {**values, "entities": entities_in(record.get("label"))})
    except ValueError as error:
        return BadRow(place, str(error))


def entities_in(label: Any) -> list[tuple[str, int, int, str]]:
    """Return the entities of a text: type, first character, end (exclusive), surface; raises ValueError."""
    try:
        return [
            (entity_type, int(first), int(last) + 1, surface)
            for entity_type, surfaces in label.items()
            for surface, spans in surfaces.items()
            for first, last in spans
        ]
    except (AttributeError, TypeError, ValueError, OverflowError) as error:
        raise ValueError("'label' is not of the form {type: {text: [[first, last], ...]}}") from error
