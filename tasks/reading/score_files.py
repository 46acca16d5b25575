"""Read the files of the command tasks.score: gold answers and predictions.

Every function raises InputError, with the file and the line or key, for a file that cannot be read or understood.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeGuard

from reader.errors import InputError
from tasks.data.examples import Place
from tasks.layouts.conll import Conll
from tasks.layouts.lines import json_objects, read_json, read_lines
from tasks.layouts.rows import BadRow, Layout, Row
from tasks.layouts.squad import Squad
from tasks.metrics.entities import SpanLabels

# Columns that hold the label in GLUE's files. MNLI's dev files also have label1 to label5.
LABEL_COLUMNS = ("gold_label", "label", "Quality", "is_duplicate", "score")
PREDICTION_HEADER = ["index", "prediction"]
JSON_SUFFIXES = (".json", ".jsonl")
NO_LABEL = "-"


def answers_of(path: Path) -> dict[str, list[str]]:
    """Return the answers of each question ID in a JSON file of SQuAD's layout, in the order of the file.

    An unanswerable question has an empty list.
    """
    answers: dict[str, list[str]] = {}
    for row in _rows(Squad(), path):
        key = str(row.values["id"])
        if key in answers:
            raise InputError(f"{row.place}: the ID {key!r} occurs twice; keep one of the questions")
        try:
            answers[key] = [str(answer["text"]) for answer in row.values["answers"]]
        except (KeyError, TypeError) as error:
            raise InputError(f"{row.place}: the answers are not objects with a 'text'") from error
    return answers


def texts_of(path: Path) -> dict[str, str]:
    """Return the predicted text of each question ID."""
    return json_object(path, (str,), "a text")


def json_object(path: Path, types: tuple[type, ...], what: str) -> dict[str, Any]:
    """Return a JSON object whose values all have one of some types; `what` describes them in the error."""
    values = read_json(path)
    if not isinstance(values, dict):
        raise InputError(f'{path}: not a JSON object {{"ID": value, ...}}')
    for key, value in values.items():
        if not isinstance(value, types) or isinstance(value, bool):
            raise InputError(
                f"{path}: the value of {key!r} is not {what}: {json.dumps(value, ensure_ascii=False)[:60]}"
            )
    return values


def span_labels(path: Path) -> list[SpanLabels]:
    """Return the `label` of each line of a JSON-lines file in CLUENER's layout."""
    labels: list[SpanLabels] = []
    for place, record in json_objects(path):
        if isinstance(record, BadRow):
            raise InputError(f"{place}: {record.reason}")
        label = record.get("label")
        if not _is_span_labels(label):
            raise InputError(f"{place}: 'label' is not of the form {{type: {{text: [[first, last], ...]}}}}")
        labels.append(label)
    return labels


def labels_of_lines(path: Path) -> dict[str, str | int]:
    """Return the `label` of each line of a JSON-lines file in CLUE's layout by ID, which is the line's number, counted
    from 0, if it has no `id`. Rows with the label "-", which have no gold label, are left out."""
    labels: dict[str, str | int] = {}
    for index, (place, record) in enumerate(json_objects(path)):
        if isinstance(record, BadRow):
            raise InputError(f"{place}: {record.reason}")
        key, label = str(record.get("id", index)), record.get("label")
        if not isinstance(label, str | int) or isinstance(label, bool):
            raise InputError(f"{place}: 'label' is not a label: {json.dumps(label, ensure_ascii=False)[:60]}")
        if key in labels:
            raise InputError(f"{place}: the id {key!r} occurs twice")
        if label != NO_LABEL:
            labels[key] = label
    return labels


def labels_of_both(gold: Path, predictions: Path) -> tuple[list[str | int], list[str | int]]:
    """Return the labels of two JSON-lines files, in the order of the first; raises InputError for other IDs in one."""
    expected, found = labels_of_lines(gold), labels_of_lines(predictions)
    for path, here, there in ((predictions, expected, found), (gold, found, expected)):
        missing = [key for key in here if key not in there]
        if missing:
            raise InputError(f"{path}: no row with the id {missing[0]!r} ({len(missing)} missing)")
    return list(expected.values()), [found[key] for key in expected]


def tag_columns(gold: Path, predictions: Path | None) -> tuple[list[list[str]], list[list[str]]]:
    """Return the gold and predicted tags of each sentence.

    With one file, they are its last two columns. With two files, they are the last column of each, and both must have
    the same tokens in the first column. Document marks (-DOCSTART-) are left out.
    """
    gold_layout = Conll(tag_column=-1 if predictions else -2)
    rows, predicted_rows = list(_rows(gold_layout, gold)), list(_rows(Conll(), predictions or gold))
    for row, predicted in zip(rows, predicted_rows, strict=False):
        if row.values["tokens"] != predicted.values["tokens"]:
            raise InputError(f"{predicted.place}: the tokens of this sentence are not those at {row.place}")
    return [row.values["tags"] for row in rows], [row.values["tags"] for row in predicted_rows]


def gold_column(path: Path, column: str | None, is_score: bool) -> list[Any]:
    """Return one column of a TSV file: labels as str, or scores as float.

    Args:
        path: the file.
        column: name of the column, or its number, counted from 1, in a file without a header. None: the first of
            LABEL_COLUMNS that the header has.
        is_score: whether to convert the values to float.
    """
    lines = _text_lines(path)
    if column is not None and column.isdecimal():
        index = int(column) - 1
        if index < 0:
            raise InputError("--column: columns are counted from 1")
    else:
        header = lines.pop(0)[1].split("\t") if lines else []
        names = [name for name in ([column] if column else LABEL_COLUMNS) if name in header]
        if not names:
            wanted = column or f"any of {', '.join(LABEL_COLUMNS)}"
            raise InputError(f"{path}: the first line has no column {wanted}; give its name or number with --column")
        index = header.index(names[0])
    values = []
    for place, line in lines:
        fields = line.split("\t")
        if len(fields) <= index:
            raise InputError(f"{place}: {len(fields)} columns; the label is in column {index + 1}")
        values.append(_value(fields[index], is_score, place))
    return values


def predicted_column(path: Path, num_rows: int, is_score: bool) -> list[Any]:
    """Return the predictions of a TSV file with the header `index<TAB>prediction`, sorted by index.

    Each index from 0 to num_rows - 1 must occur exactly once, in any order.
    """
    lines = _text_lines(path)
    if not lines or lines[0][1].split("\t") != PREDICTION_HEADER:
        raise InputError(f'{path}:1: the header is not "index<TAB>prediction"')
    values: dict[int, Any] = {}
    for place, line in lines[1:]:
        fields = line.split("\t")
        if len(fields) != 2 or re.fullmatch("[0-9]{1,18}", fields[0]) is None:
            raise InputError(f"{place}: not an index and a prediction, separated by a tab")
        index = int(fields[0])
        if index in values or index >= num_rows:
            problem = "occurs twice" if index in values else f"is not a row of the gold file, which has {num_rows}"
            raise InputError(f"{place}: the index {index} {problem}")
        values[index] = _value(fields[1], is_score, place)
    missing = next((index for index in range(num_rows) if index not in values), None)
    if missing is not None:
        raise InputError(f"{path}: no prediction for row {missing}, counted from 0 ({num_rows - len(values)} missing)")
    return [values[index] for index in range(num_rows)]


def _text_lines(path: Path) -> list[tuple[Place, str]]:
    """Return the lines of a file with their places; raises InputError for a line that is not UTF-8."""
    lines = []
    for place, line in read_lines(path):
        if isinstance(line, BadRow):
            raise InputError(f"{place}: {line.reason}")
        lines.append((place, line))
    return lines


def _value(text: str, is_score: bool, place: Place) -> str | float:
    try:
        return float(text) if is_score else text
    except ValueError as error:
        raise InputError(f"{place}: {text[:60]!r} is not a number") from error


def _rows(layout: Layout, path: Path) -> Iterator[Row]:
    """Yield the rows of a file with gold values or predictions; raises InputError for a bad row."""
    for row in layout.rows([path], labelled=True):
        if isinstance(row, BadRow):
            raise InputError(f"{row.place}: {row.reason}")
        if isinstance(row, Row):
            yield row


def _is_span_labels(label: Any) -> TypeGuard[SpanLabels]:
    """Return whether a value has the type SpanLabels."""
    return isinstance(label, dict) and all(
        isinstance(surfaces, dict) and all(_are_positions(positions) for positions in surfaces.values())
        for surfaces in label.values()
    )


def _are_positions(positions: Any) -> bool:
    return isinstance(positions, list) and all(
        isinstance(position, list) and [type(end) for end in position] == [int, int] for position in positions
    )
