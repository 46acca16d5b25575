"""An example of a classification, and how a row of a file becomes one."""

from __future__ import annotations

from dataclasses import dataclass

from tasks.data.examples import Place
from tasks.kinds.checked_values import Reading, id_of, label_of
from tasks.kinds.sentences import texts_of_row
from tasks.layouts.rows import Row


@dataclass(frozen=True)
class ClassificationExample:
    """One or two texts and a label.

    Attributes:
        id: unique within its file; the row's number, counted from 0, if the file has no IDs.
        text_b: None if the task has single texts.
        label: in the official spelling; one of the task's labels.
        place: the file and line.
    """

    id: str
    text_a: str
    text_b: str | None
    label: str | None
    place: Place


def read_example(row: Row, default_id: str, reading: Reading) -> ClassificationExample:
    """Return an example of a classification; raises RowError or OmittedError."""
    # The label first: a row without a gold label is left out, whatever its texts are.
    label = label_of(row.values.get("label"), reading.task) if reading.labelled else None
    return ClassificationExample(id_of(row.values, default_id), *texts_of_row(row, reading), label, row.place)
