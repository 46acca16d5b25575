"""Read the files of the command tasks.score: gold answers and predictions.

Every function raises InputError, with the file and the line or key, for a file that cannot be read or understood.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeGuard

from reader.errors import InputError
from tasks.data.examples import Place
from tasks.layouts.conll import Conll
from tasks.layouts.lines import UnreadableError, json_objects, read_json, read_lines
from tasks.layouts.rows import BadRow, Layout, Row, Wanted
from tasks.layouts.squad import Squad
from tasks.metrics.entities import SpanLabels

# Columns that hold the label in GLUE's files. MNLI's dev files also have label1 to label5.
LABEL_COLUMNS = ("gold_label", "label", "Quality", "is_duplicate", "score")
PREDICTION_HEADER = ["index", "prediction"]
# The keys of JSON lines, as CLUE's files have them; SCORE is that of the predictions of a regression.
ID, LABEL, SCORE = "id", "label", "score"
JSON_SUFFIXES = (".json", ".jsonl")
# The label of a row on which the annotators do not agree (MNLI, OCNLI, CMNLI).
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


def matched_values(
    gold: Path,
    predictions: Path,
    column: str | None,
    id_column: str | None,
    is_score: bool,
    warn: Callable[[str], None] = lambda line: None,
) -> tuple[list[Any], list[Any]]:
    """Return the gold and the predicted values of the rows with the same ID, in the order of the gold file.

    Gold rows without a gold value are left out; they may have a prediction. Raises InputError if another row is in one
    file only.

    Args:
        warn: is called with a line that counts the rows that are left out, if there are any, and with a line if no
            predicted label is among the gold labels: they may be letters and numbers of options.
        column, id_column, is_score: see `gold_values`.
    """
    found = predicted_values(predictions, is_score)
    expected = gold_values(gold, column, id_column, is_score, found)
    unknown = [key for key in found if key not in expected]
    missing = [key for key, value in expected.items() if value is not None and key not in found]
    for path, keys in ((predictions, missing), (gold, unknown)):
        if keys:
            hint = "rows without IDs are counted from 0; --id_column names the IDs of a table"
            raise InputError(f"{path}: no row with the id {keys[0]!r} ({len(keys)} missing); {hint}")
    kept = {key: value for key, value in expected.items() if value is not None}
    if len(kept) < len(expected):
        warn(
            f"warning: {gold}: {len(expected) - len(kept)} of {len(expected)} rows have no gold value and are left out"
        )
    predicted = [found[key] for key in kept]
    if not is_score and kept and not {*predicted} & {*kept.values()}:
        shown = f"{predictions} has {predicted[0]!r}, {gold} has {next(iter(kept.values()))!r}"
        warn(f"warning: no predicted value is among the gold values ({shown}); are they of the same form?")
    return list(kept.values()), predicted


def gold_values(
    path: Path, column: str | None, id_column: str | None, is_score: bool, predicted: Container[str]
) -> dict[str, Any]:
    """Return the label (str) or the score (float) of each row of a file by the row's ID; None if it has none.

    A row has no gold value if its label is "-", or if its line in a table is too short and has no prediction: the
    readers leave out such lines of QQP.

    Args:
        path: JSON lines (JSON_SUFFIXES), or else a table with tabs between its columns.
        column: the key or the name of the column; or its number, counted from 1, in a table without a header. None: the
            key LABEL or SCORE, or the first of LABEL_COLUMNS that the header has.
        id_column: the same for the ID. None: the key ID, if a JSON line has it, and otherwise the row's number, counted
            from 0.
        is_score: whether the values are scores.
        predicted: the IDs that have predictions.
    """
    if path.suffix in JSON_SUFFIXES:
        values = _line_values(path, column or (SCORE if is_score else LABEL), id_column, is_score)
    else:
        values = _table_values(path, column, id_column, is_score, predicted)
    return {key: None if value == NO_LABEL else value for key, value in values.items()}


def predicted_values(path: Path, is_score: bool) -> dict[str, Any]:
    """Return the predicted label (str) or score (float) of each ID.

    They are in JSON lines; in one JSON object, {"ID": value, ...}, without the key of JSON lines; or in a table with
    PREDICTION_HEADER.
    """
    if path.suffix in JSON_SUFFIXES:
        name = SCORE if is_score else LABEL
        by_id = _object_without(path, name)
        if by_id is None:
            return _line_values(path, name, None, is_score)
        return {key: _json_value(value, repr(key), is_score, Place(path)) for key, value in by_id.items()}
    lines = _text_lines(path)
    if not lines or lines[0][1].split("\t") != PREDICTION_HEADER:
        raise InputError(f'{path}:1: the header is not "index<TAB>prediction"')
    values: dict[str, Any] = {}
    for place, line in lines[1:]:
        fields = line.split("\t")
        if len(fields) != len(PREDICTION_HEADER):
            raise InputError(f"{place}: not an index and a prediction, separated by a tab")
        _add(values, fields[0], _value(fields[1], is_score, place), place)
    return values


def _object_without(path: Path, name: str) -> dict[str, Any] | None:
    """Return the object that a JSON file is, or None if the file is of another form or the object has the key `name`.

    Raises InputError for a JSON list.
    """
    try:
        value = read_json(path)
    except UnreadableError:
        return None
    if isinstance(value, list):
        raise InputError(
            f'{path}: a JSON list; give one object {{"ID": value, ...}} or a line {{"id", "{name}"}} for each'
        )
    return value if isinstance(value, dict) and name not in value else None


def _json_value(value: Any, name: str, is_score: bool, place: Place) -> str | float:
    """Return a label or a score. A truth value is a label as JSON writes it."""
    text = str(value).lower() if isinstance(value, bool) else value
    if not isinstance(text, (str, int, float) if is_score else (str, int)):
        what = "a number" if is_score else "a label"
        raise InputError(f"{place}: {name} is not {what}: {json.dumps(value, ensure_ascii=False)[:60]}")
    return _value(str(text), is_score, place)


def _line_values(path: Path, name: str, id_name: str | None, is_score: bool) -> dict[str, Any]:
    """Return a value of each JSON line by ID.

    Without `id_name`, that is the key ID, or the line's number, counted from 0, if the line has none.
    """
    values: dict[str, Any] = {}
    for number, (place, record) in enumerate(json_objects(path)):
        if isinstance(record, BadRow):
            raise InputError(f"{place}: {record.reason}")
        if name not in record:
            raise InputError(f"{place}: no key {name!r} in the object, which has {', '.join(record)[:60]}")
        value = _json_value(record[name], repr(name), is_score, place)
        if id_name is not None and id_name not in record:
            raise InputError(f"{place}: no key {id_name!r}, which --id_column names")
        _add(values, str(record.get(id_name or ID, number)), value, place)
    return values


def _table_values(
    path: Path, column: str | None, id_column: str | None, is_score: bool, predicted: Container[str]
) -> dict[str, Any]:
    """Return a column of a TSV file by ID, and None for a line that is too short and has no prediction."""
    lines = _text_lines(path)
    has_header = column is None or not column.isdecimal()
    header = lines.pop(0)[1].split("\t") if lines and has_header else []
    index = _position(path, header, [column] if column else LABEL_COLUMNS, "--column")
    id_index = None if id_column is None else _position(path, header, [id_column], "--id_column")
    values: dict[str, Any] = {}
    for number, (place, line) in enumerate(lines):
        fields = line.split("\t")
        if id_index is not None and len(fields) <= id_index:
            raise InputError(f"{place}: {len(fields)} columns; the ID is in column {id_index + 1}")
        key = str(number) if id_index is None else fields[id_index]
        if len(fields) > index:
            _add(values, key, _value(fields[index], is_score, place), place)
        elif key not in predicted:
            _add(values, key, None, place)
        else:
            raise InputError(f"{place}: {len(fields)} columns; the label is in column {index + 1}")
    return values


def _position(path: Path, header: Sequence[str], names: Sequence[str], option: str) -> int:
    """Return the position of the first of some columns that the header has; a single name may be a number from 1."""
    if len(names) == 1 and names[0].isdecimal():
        if int(names[0]) == 0:
            raise InputError(f"{option}: columns are counted from 1")
        return int(names[0]) - 1
    known = [name for name in names if name in header]
    if not known:
        wanted = names[0] if len(names) == 1 else f"any of {', '.join(names)}"
        raise InputError(f"{path}: the first line has no column {wanted}; give its name or number with {option}")
    return header.index(known[0])


def _add(values: dict[str, Any], key: str, value: Any, place: Place) -> None:
    if key in values:
        raise InputError(f"{place}: the id {key!r} occurs twice")
    values[key] = value


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
    for row in layout.rows([path], Wanted(labelled=True)):
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
