"""Texts of a user, in a table or in JSON lines, as the examples of a task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from tasks.data.examples import Example, Place
from tasks.prediction.own_layouts import json_layout, known_roles, table_layout
from tasks.prediction.own_rows import MARKS, MarkedTexts, SplitTexts
from tasks.reading.load import OnBadRow, Report, load_split
from tasks.registry.task import TRAIN, Source, Split, Task

SPLIT = "input"
JSON_SUFFIXES = (".jsonl", ".json")


class OwnTexts(NamedTuple):
    """Examples without gold values, the account of their rows, and the texts that were split into words, by place."""

    examples: list[Example]
    report: Report
    texts: Mapping[Place, str]


def load_texts(task: Task, path: Path, on_bad_row: OnBadRow) -> OwnTexts:
    """Read the texts of a file as examples without gold values.

    A file that ends in .jsonl or .json has one object a line, with the task's values as keys: text_a (and text_b);
    context, question and options; context and question; tokens, or text; and `id`, if there are IDs. Any other file is
    a table with tabs between columns. Its first line may have these names; otherwise the columns are in this order.
    In place of these names, keys and columns may be called as in the task's own files; tokens and options may then be
    in a table as well. Objects may also be those of the task's own files. Texts are changed as those files are, and if
    the task marks parts of its texts, the texts must have the marks.

    Args:
        task: its labels are known.

    Raises InputError as `load_split` does, and for a file whose first row lacks a value.
    """
    roles = known_roles(task)
    layout = json_layout(task, path, roles) if path.suffix in JSON_SUFFIXES else table_layout(task, path, roles)
    marks = MARKS.get(type(task.layout))
    if marks is not None and layout is not task.layout:
        layout = MarkedTexts(layout, marks)
    texts: dict[Place, str] = {}
    if task.kind == "tagging" and task.language == "en":
        layout = SplitTexts(layout, texts)
    splits = {TRAIN: task.splits[TRAIN], SPLIT: Split((Source((path.name,), layout),), labelled=False)}
    loaded = load_split(replace(task, splits=splits, folders=()), path.parent, SPLIT, on_bad_row)
    return OwnTexts(*loaded, texts)
