"""CLUEWSC2020: one JSON object a line, a text with a noun phrase and a pronoun.

As in CLUE's baseline the two spans are marked in the text, which makes it a classification of a single text: the noun
phrase becomes `_phrase_` and the pronoun `[pronoun]`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasks.data.examples import Place, locate
from tasks.layouts.lines import json_objects
from tasks.layouts.rows import AnyRow, BadRow, Row, Wanted

MARKS = {"span1": ("_", "_"), "span2": ("[", "]")}


@dataclass(frozen=True)
class CluewscMarked:
    """Objects with `text`, `target` (`span1_text`, `span1_index`, `span2_...`) and `label`.

    The indices count characters. Where the text at an index is not the span, the nearest occurrence is marked.
    """

    def rows(self, files: Sequence[Path], wanted: Wanted) -> Iterator[AnyRow]:
        """Yield the texts of each file with marked spans."""
        for path in files:
            for place, record in json_objects(path):
                yield record if isinstance(record, BadRow) else _row(place, record, wanted.labelled)


def _row(place: Place, record: Mapping[str, Any], labelled: bool) -> AnyRow:
    text, target = record.get("text"), record.get("target")
    if not isinstance(text, str) or not isinstance(target, dict):
        return BadRow(place, "no 'text' or no 'target'")
    insertions: list[tuple[int, int, str]] = []
    for order, (name, (before, after)) in enumerate(MARKS.items()):
        surface, index = target.get(f"{name}_text"), target.get(f"{name}_index")
        if not isinstance(surface, str) or not surface or not isinstance(index, int):
            return BadRow(place, f"no {name}_text or no {name}_index in 'target'")
        start = locate(surface, text, index)
        if start is None:
            return BadRow(place, f"{name}_text {surface!r} is not in the text")
        insertions += [(start, order, before), (start + len(surface), -order, after)]
    for position, _, mark in sorted(insertions, reverse=True):
        text = text[:position] + mark + text[position:]
    values = {"text_a": text, **({"id": record["id"]} if "id" in record else {})}
    if labelled and "label" not in record:
        return BadRow(place, "no 'label'")
    return Row(place, {**values, "label": record["label"]} if labelled else values)
