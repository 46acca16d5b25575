"""An example of a regression, and how a row of a file becomes one."""

from __future__ import annotations

from dataclasses import dataclass

from tasks.data.examples import Place
from tasks.kinds.checked_values import Reading, id_of, score_of
from tasks.kinds.sentences import texts_of_row
from tasks.layouts.rows import Row


@dataclass(frozen=True)
class RegressionExample:
    """One or two texts and a score. The attributes are those of ClassificationExample."""

    id: str
    text_a: str
    text_b: str | None
    score: float | None
    place: Place


def read_example(row: Row, default_id: str, reading: Reading) -> RegressionExample:
    """Return an example of a regression; raises RowError."""
    score = score_of(row.values.get("score"), reading.task) if reading.labelled else None
    return RegressionExample(id_of(row.values, default_id), *texts_of_row(row, reading), score, row.place)
