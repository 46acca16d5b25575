"""Small files for the tests of tasks, and what a layout or a task reads from them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tasks.files.official import Examples, OnBadRow, load_split
from tasks.kinds.catalog import KINDS
from tasks.kinds.task import Source, Split, Task
from tasks.layouts.rows import AnyRow, Layout, Row


def write(path: Path, text: str | bytes) -> Path:
    """Write a file as it is given, and create its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def write_json(path: Path, value: Any) -> Path:
    return write(path, json.dumps(value, ensure_ascii=False))


def write_lines(path: Path, *values: Any) -> Path:
    """Write a JSON value on each line."""
    return write(path, "".join(json.dumps(value, ensure_ascii=False) + "\n" for value in values))


def read(layout: Layout, *files: Path, labelled: bool = True) -> list[AnyRow]:
    wanted = {name: role for kind in KINDS.values() for name, role in kind.wanted(labelled).items()}
    return list(layout.rows(files, wanted))


def values(layout: Layout, *files: Path, labelled: bool = True) -> list[Mapping[str, Any]]:
    """Return the values of rows, all of which are good."""
    rows = read(layout, *files, labelled=labelled)
    assert all(isinstance(row, Row) for row in rows), rows
    return [row.values for row in rows if isinstance(row, Row)]


def squad(context: str, answers: Mapping[str, Sequence[str]], question: str = "q?") -> dict[str, Any]:
    """Return a file in SQuAD's layout, with answers in one context by ID; none for a question without answer."""
    questions = [
        {
            "id": key,
            "question": question,
            "is_impossible": not texts,
            "answers": [{"text": text, "answer_start": context.index(text)} for text in texts],
        }
        for key, texts in answers.items()
    ]
    return {"data": [{"paragraphs": [{"context": context, "qas": questions}]}]}


def files(*alternatives: str | tuple[str, ...], labelled: bool = True) -> Split:
    """Return a split with one source for each alternative, a file or several."""
    names = ((names,) if isinstance(names, str) else names for names in alternatives)
    return Split(tuple(map(Source, names)), labelled)


def load(task: Task, folder: Path, split: str = "train", on_bad_row: OnBadRow = "error") -> Examples:
    """Read a split, and check that its account is complete."""
    loaded = load_split(task, folder, split, on_bad_row)
    report = loaded.report
    assert report.rows == report.examples + len(report.omitted) + len(report.bad)
    assert report.examples == len(loaded.examples)
    return loaded
