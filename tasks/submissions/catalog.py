"""All forms of submissions by name, and the form of each task."""

from __future__ import annotations

from reader.errors import InputError
from tasks.kinds.base import Predictions
from tasks.kinds.catalog import KINDS
from tasks.kinds.task import Task
from tasks.submissions import json_lines, json_objects, tables
from tasks.submissions.form import Form

FORMS: dict[str, Form] = {
    form.name: form
    for form in (
        Form("glue", "GLUE's table: index, prediction", tables.glue_file_name, tables.index_and_prediction),
        Form(
            "squad",
            "JSON object: ID, text; with na_prob.json if questions may be unanswerable",
            json_objects.predictions_file_name,
            json_objects.answers_by_id,
            json_objects.no_answer_probabilities,
        ),
        Form("cmrc2018", "JSON object: ID, text", json_lines.clue_file_name, json_objects.answers_by_id),
        Form("clue", 'JSON lines: {"id", "label"}', json_lines.clue_file_name, json_lines.labelled_lines),
        Form("clue_object", "JSON object: ID, index", json_lines.clue_file_name, json_objects.answers_by_id),
        Form("table", "table: index, prediction", tables.table_file_name, tables.index_and_prediction),
        Form("letters", "JSON object: ID, letter", json_objects.predictions_file_name, json_objects.letters_by_id),
        Form("tag_columns", "a token and its tags a line", tables.columns_file_name, tables.tag_columns),
    )
}


def form_of(task: Task) -> Form:
    """Return the form of a task's submissions, or a form for its kind if its benchmark takes none."""
    return FORMS[task.submission or KINDS[task.kind].submission]


def submission_files(predictions: Predictions, split: str) -> dict[str, bytes]:
    """Return the content of each file of the submission of a split, by its official name, the main file first.

    Raises InputError if two examples have the same ID, because the benchmark could not tell them apart.
    """
    seen: dict[str, str] = {}
    for example in predictions.examples:
        if example.id in seen:
            raise InputError(f"{example.place}: the id {example.id!r} is not unique; it is also at {seen[example.id]}")
        seen[example.id] = str(example.place)
    form = form_of(predictions.task)
    main = form.file_name(predictions.task, split)
    return {main: form.content(predictions), **form.companions(predictions)}
