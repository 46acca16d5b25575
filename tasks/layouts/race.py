"""RACE: folders of files, each one article with its questions as a JSON object."""

from __future__ import annotations

import string
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasks.data.examples import Place
from tasks.layouts.lines import UnreadableError, files_in, read_json
from tasks.layouts.rows import AnyRow, BadRow, Row, Wanted


@dataclass(frozen=True)
class Race:
    """Folders of .txt files with `article`, and the lists `questions`, `options` and `answers` (letters).

    A row is a question. Its ID is made of the names of folder and file and the number of the question, because file
    names repeat between high and middle.
    """

    def rows(self, files: Sequence[Path], wanted: Wanted) -> Iterator[AnyRow]:
        """Yield the questions of the files in each folder, files by name; raises InputError for an empty folder."""
        for folder in files:
            for path in files_in(folder, "*.txt"):
                yield from _file_rows(path, wanted.labelled)


def _file_rows(path: Path, labelled: bool) -> Iterator[AnyRow]:
    try:
        record = read_json(path)
    except UnreadableError as error:
        yield error.row
        return
    keys = ("questions", "options", *(["answers"] if labelled else []))
    lists = [record.get(key) if isinstance(record, dict) else None for key in keys]
    sizes = {len(values) if isinstance(values, list) else -1 for values in lists}
    if len(sizes) != 1 or -1 in sizes:
        yield BadRow(Place(path), f"expected an object with the lists {', '.join(keys)}, equally long")
        return
    for number, values in enumerate(zip(*lists, strict=True)):
        place = Place(path, part=f"question {number}")
        row: dict[str, Any] = dict(zip(("question", "options", "answer"), values, strict=False))
        letter = row.get("answer", "A")
        if letter not in [*string.ascii_uppercase]:
            yield BadRow(place, f"the answer {str(letter)[:60]!r} is not a letter A, B, C ...")
            continue
        if labelled:
            row["answer"] = string.ascii_uppercase.index(letter)
        yield Row(place, {**row, "id": f"{path.parent.name}/{path.stem}-{number}", "context": record.get("article")})
