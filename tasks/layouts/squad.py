"""SQuAD's JSON, in which CMRC 2018, DRCD and DuReader-robust are distributed as well."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from reader.errors import InputError
from tasks.data.examples import Place
from tasks.layouts.lines import read_json
from tasks.layouts.rows import AnyRow, BadRow, Row, Wanted


@dataclass(frozen=True)
class Squad:
    """`data` > entries > `paragraphs` with `context` > `qas` with `question`, `id` and `answers`; a row is a question.

    Version 2.0 adds `is_impossible`; its `plausible_answers` are not read.
    """

    def rows(self, files: Sequence[Path], wanted: Wanted) -> Iterator[AnyRow]:
        """Yield the questions of each file; raises InputError for a file without `data`.

        An entry without paragraphs, and a paragraph without questions, is one bad row.
        """
        for path in files:
            top = read_json(path)
            if not isinstance(top, dict) or not isinstance(top.get("data"), list):
                raise InputError(f"{path}: no list 'data'; this is not a file in SQuAD's format")
            for entry in _items(top, "data", path, ""):
                yield from [entry] if isinstance(entry, BadRow) else _entry_rows(path, *entry, wanted.labelled)


Item: TypeAlias = tuple[str, Any]


def _items(value: Any, key: str, path: Path, name: str) -> Iterator[Item | BadRow]:
    """Yield the JSON path and the value of each item of a list in an object, or one bad row without such a list."""
    found = value.get(key) if isinstance(value, dict) else None
    if not isinstance(found, list):
        yield BadRow(Place(path, part=name), f"no list {key!r}")
        return
    prefix = f"{name}." if name else ""
    yield from ((f"{prefix}{key}[{index}]", item) for index, item in enumerate(found))


def _entry_rows(path: Path, name: str, entry: Any, labelled: bool) -> Iterator[AnyRow]:
    for paragraph in _items(entry, "paragraphs", path, name):
        if isinstance(paragraph, BadRow):
            yield paragraph
            continue
        paragraph_name, value = paragraph
        for question in _items(value, "qas", path, paragraph_name):
            yield question if isinstance(question, BadRow) else _row(path, question[0], value, question[1], labelled)


def _row(path: Path, name: str, paragraph: dict[str, Any], question: Any, labelled: bool) -> AnyRow:
    if not isinstance(question, dict):
        return BadRow(Place(path, part=name), "expected an object with `question` and `id`")
    place = Place(path, part=f"{name} (id {question['id']})" if "id" in question else name)
    gold = ("answers", "is_impossible") if labelled else ()
    values = {key: question[key] for key in ("id", "question", *gold) if key in question}
    missing = next((key for key in ("id", "question", *gold[:1]) if key not in values), None)
    # Files of version 2.0 may leave out the answers of a question without answer.
    if missing is not None and not (missing == "answers" and values.get("is_impossible") is True):
        return BadRow(place, f"no {missing!r}")
    return Row(place, {"context": paragraph.get("context"), **({"answers": []} if labelled else {}), **values})
