"""Checks of single values of a row. Each failure is a BadRow that continues `file:line: `."""

from __future__ import annotations

import math
import string
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from reader.errors import quoted, similar
from reader.tokenization.given_texts import text_fault
from tasks.kinds.task import Task
from tasks.layouts.rows import BadRow, OmittedRow
from tasks.metrics.entities import TagReader


@dataclass
class Reading:
    """What is known of a file while its rows become examples.

    Attributes:
        task: the task; labelled: whether the file has gold values; training: whether a model is trained on the file, so
            that every answer must have a position.
        own: whether it has a user's texts, none of which may be empty; those of a benchmark may, because it asks for a
            prediction for each row.
        notes: description -> number, of gold values that were read otherwise than the file may mean them.
    """

    task: Task
    labelled: bool
    training: bool
    own: bool = False
    notes: Counter[str] = field(default_factory=Counter)

    @cached_property
    def tags(self) -> TagReader:
        """The reader of the file's tags."""
        return TagReader(self.task.labels, self.task.label_aliases)


def text_of(value: Any, name: str, may_be_empty: bool = False) -> str:
    """Return a text; raises BadRow unless it is one by the rules of given_texts.py."""
    if fault := text_fault(value, may_be_empty):
        raise BadRow(f"{name} {fault}")
    text: str = value
    return text


def list_of(value: Any, name: str) -> Sequence[Any]:
    """Return a list; raises BadRow for another value, such as a column of a table without `list_separator`."""
    if not isinstance(value, (list, tuple)):
        not_list = f"{name} is not a list but {quoted(value)}; one column of a table needs `list_separator`"
        raise BadRow(f"{name} is missing" if value is None else not_list)
    return value


def texts_of(value: Any, name: str, may_be_empty: bool = False) -> tuple[str, ...]:
    """Return a list of texts; raises BadRow unless each is a text as `text_of` requires."""
    return tuple(text_of(text, f"{name}[{index}]", may_be_empty) for index, text in enumerate(list_of(value, name)))


def label_of(value: Any, task: Task) -> str:
    """Return a label in the official spelling. A JSON number or truth value is a label as JSON writes it.

    Raises OmittedRow if the row has no gold label, BadRow if it is none of the task's labels.
    """
    if isinstance(value, (bool, int)):
        value = str(value).lower()
    label = text_of(value, "the label").strip()
    if label in task.omitted_labels:
        raise OmittedRow(f"no gold label ({label})")
    label = _one_field(task.label_aliases.get(label, label), "label")
    check_label(label, task, "label")
    return label


def check_label(label: str, task: Task, what: str) -> None:
    """Raise BadRow unless a label or type of entity is one of the task's, if the task has its labels already."""
    if task.labels is not None and label not in task.labels:
        names = ", ".join(task.labels[:12]) + (", ..." if len(task.labels) > 12 else "")
        raise BadRow(
            f"the {what} {quoted(label)} is none of {task.labels_of}: {names}{similar(label[:60], task.labels)}"
        )


def score_of(value: Any, score_range: tuple[float, float] | None = None) -> float:
    """Return a score; raises BadRow unless it is a finite number within a range."""
    try:
        score = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        score = math.nan
    if not math.isfinite(score):
        raise BadRow(f"the score {quoted(value)} is not a number")
    low, high = score_range or (-math.inf, math.inf)
    if not low <= score <= high:
        raise BadRow(f"the score {score:g} is not between {low:g} and {high:g}")
    return score


def choice_of(value: Any, options: tuple[str, ...]) -> int:
    """Return the index of the right option, which is given as an index, as the option's text, or as a letter.

    Of equal options the first is right. Raises BadRow if the value names no option, or several: the answer "1" may be
    the option "1" or the second one.
    """
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(options):
        return value
    named = (options, string.ascii_uppercase[: len(options)], [str(index) for index in range(len(options))])
    found = {list(names).index(value) for names in named if value in list(names)}
    if len(found) > 1:
        raise BadRow(
            f"the answer {quoted(value)} is the text of one option, and the letter or number of another; give a letter"
        )
    if not found:
        raise BadRow(f"the answer {quoted(value)} is none of the {len(options)} options")
    return found.pop()


def flag_of(value: Any, name: str) -> bool:
    """Return a truth value, which tables have as the text true, false, 1 or 0; raises BadRow for any other value."""
    spelling = str(value).strip().lower() if isinstance(value, (str, int)) else ""
    if spelling not in ("true", "false", "1", "0"):
        raise BadRow(f"{name} is {quoted(value)}, neither true nor false")
    return spelling in ("true", "1")


def id_of(values: Mapping[str, Any], default: str) -> str:
    """Return the ID of a row as a text; raises BadRow if it is neither a whole number nor a text of one line.

    Files of predictions are tables, whose fields hold no tabs.
    """
    value = values.get("id", default)
    row_id = str(value) if type(value) is int else text_of(value, "the id")
    return _one_field(row_id, "id")


def _one_field(text: str, what: str) -> str:
    if any(character in text for character in "\t\n\r"):
        raise BadRow(f"the {what} {quoted(text)} has a tab or a line break")
    return text
