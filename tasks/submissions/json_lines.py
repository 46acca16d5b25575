"""JSON lines: the files of CLUE, one object for each row of the test file."""

from __future__ import annotations

from tasks.registry.task import Task
from tasks.submissions.form import Predicted, json_bytes, json_id


def clue_file_name(task: Task, split: str) -> str:
    """Return TASK_predict.json. Of some sets CLUE has several versions and adds a number, as in `c311_predict.json`."""
    return f"{task.name}_predict.json"


def labelled_lines(predicted: Predicted) -> bytes:
    """Return {"id": ID, "label": label} for each row.

    The label is a text in the official spelling, which is a number in some sets, or the index of an option. In
    CLUENER's file it is {type: {surface: [[first, last], ...]}}, in characters, **last inclusive**.
    """
    return b"".join(json_bytes({"id": json_id(example.id), "label": answer}) for example, answer in predicted.pairs())
