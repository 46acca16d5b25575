"""A custom task: a short YAML file in place of a row of the registry.

    kind: classification
    language: en
    layout: tsv
    columns: {text_a: review, label: stars}     # names of the header, or numbers counted from 1; or keys: doc.body
    files: {train: train.tsv, dev: dev.tsv}     # in the folder that the command is given
    labels: ["1", "2", "3"]                     # default: the labels that occur in the training file
    metric: accuracy

docs/tasks.md explains all keys, layouts with their options, metrics and values, with examples.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from reader.errors import InputError, located, similar
from reader.system.installation import CONF, is_settings_file, settings_file
from reader.system.untrusted_text import read_yaml
from tasks.kinds.base import Kind
from tasks.kinds.catalog import KINDS, checked
from tasks.kinds.task import LANGUAGES, Source, Split, Task
from tasks.layouts.clue import C3, Chid, Cluener, CluewscMarked
from tasks.layouts.columns import CLEANERS, Column
from tasks.layouts.conll import Conll
from tasks.layouts.json_lines import JsonLines
from tasks.layouts.questions import DuReaderDocuments, Race, Squad
from tasks.layouts.tables import Csv, Tsv
from tasks.layouts.text_folders import TextFolders
from tasks.registry import task_named

Parser = Callable[[Any, str], Any]
CONFIG = "--config"
# Layouts by name. The kinds of tasks say which of them hold their values.
LAYOUTS: dict[str, type] = {
    "tsv": Tsv,
    "csv": Csv,
    "json_lines": JsonLines,
    "text_folders": TextFolders,
    "cluewsc": CluewscMarked,
    "race": Race,
    "c3": C3,
    "chid": Chid,
    "squad": Squad,
    "dureader_documents": DuReaderDocuments,
    "conll": Conll,
    "cluener": Cluener,
}


def find_task(name: str) -> Task:
    """Return a task of the registry by its name, or a custom task by the path of its .yaml file.

    Raises InputError for an unknown name, and as `read_task_file` does.
    """
    return read_task_file(Path(name)) if is_settings_file(name) else task_named(name)


def settings_of(task: str) -> list[str]:
    """Return the options of fine-tuning that select a task and its settings: conf/tasks/NAME.yaml, or a YAML file.

    A YAML file is one of settings if it has the key `task` or `base`, else that of a custom task. A name without a file
    in conf/tasks is unknown.
    """
    if is_settings_file(task):
        own = settings_file(Path(task))
        is_settings = own.is_file() and not {"task", "base"}.isdisjoint(read_yaml(own))
        return [CONFIG, str(own)] if is_settings else ["--task", task]
    path = CONF / "tasks" / f"{task}.yaml"
    return [CONFIG, str(path)] if path.is_file() else ["--task", task]


def read_task_file(path: Path) -> Task:
    """Return the task that a YAML file describes; its name is that of the file unless the file gives one.

    Raises InputError that names the file and the key, and for an unknown key the most similar known one.
    """
    tree = read_yaml(path)
    with located(path):
        return _task(tree, path.stem)


def _task(tree: dict[str, Any], default_name: str) -> Task:
    kind = KINDS[_one_of(tree, "kind", KINDS)]
    language = _one_of(tree, "language", LANGUAGES)
    layout_name = _one_of(tree, "layout", LAYOUTS)
    layout_type = LAYOUTS[layout_name]
    if layout_name not in kind.layouts:
        kinds = [each.name for each in KINDS.values() if layout_name in each.layouts]
        raise InputError(f"layout: {layout_name} holds {', '.join(kinds)}, not {kind.name}")
    options = {field.name: field for field in dataclasses.fields(layout_type)}
    known = {*TASK_KEYS, *FIELDS, *options}
    for key in tree:
        if key not in known:
            raise InputError(f"unknown key {key}{similar(key, known)} (the layout is {layout_name})")
    for name, option in options.items():
        if name not in tree and option.default is option.default_factory is dataclasses.MISSING:
            raise InputError(f"{name}: is missing; the layout {layout_name} needs it")
    if "columns" in options:
        _check_roles(kind, _columns(tree["columns"], "columns"))
    layout = layout_type(**{name: PARSERS[name](tree[name], name) for name in options if name in tree})
    fields = {name: parse(tree[name], name) for name, parse in FIELDS.items() if name in tree}
    for name in fields:
        kinds = [each.name for each in KINDS.values() if name in each.task_fields]
        if kinds and kind.name not in kinds:
            raise InputError(f"{name}: is for {', '.join(kinds)}, not for {kind.name}; remove it")
    if "metric" not in tree:
        raise InputError("metric: is missing")
    name = _text(tree.get("name", default_name), "name")
    defaults = {"name": name, "title": name, "metric": _text(tree["metric"], "metric")}
    splits = _splits(tree.get("files"), _labels(tree.get("unlabelled", []), "unlabelled"))
    fields = {**defaults, **fields}
    return checked(Task(kind=kind.name, language=language, layout=layout, splits=splits, **fields))


def _check_roles(kind: type[Kind[Any, Any]], columns: Collection[str]) -> None:
    needed, optional = ([role.name for role in kind.roles if role.needed is needs] for needs in (True, False))
    for role in columns:
        if role not in needed + optional:
            names = ", ".join(needed + optional)
            raise InputError(
                f"columns: {role!r} is no value of {kind.name} ({names}){similar(role, needed + optional)}"
            )
    for role in needed:
        if role not in columns:
            raise InputError(f"columns: {role} is missing; give its column by name, or by number counted from 1")


def _splits(value: Any, unlabelled: Collection[str]) -> dict[str, Split]:
    """Return the splits; the value of each is the name of a file, or a list of files that are read together."""
    if not isinstance(value, dict) or not value:
        raise InputError("files: expected `train: FILE`, `dev: FILE` and further splits")
    for name in unlabelled:
        if name not in value:
            raise InputError(f"unlabelled: there is no split {name!r} in `files`{similar(name, value)}")
    return {
        str(name): Split((Source(_texts(names, f"files.{name}")),), name not in unlabelled, name not in unlabelled)
        for name, names in value.items()
    }


def _one_of(tree: dict[str, Any], key: str, known: Collection[Any]) -> Any:
    value, names = tree.get(key), ", ".join(known)
    if value is None:
        raise InputError(f"{key}: is missing; give one of {names}")
    if not isinstance(value, str) or value not in known:
        raise InputError(f"{key}: {value!r} is none of {names}{similar(value, known)}")
    return value


def _expected(key: str, what: str, value: Any) -> InputError:
    return InputError(f"{key}: expected {what}, found {value!r}")


def _text(value: Any, key: str) -> str:
    if not isinstance(value, str) or not value:
        raise _expected(key, "a text", value)
    return value


def _texts(value: Any, key: str) -> tuple[str, ...]:
    if value == []:
        raise _expected(key, "a text, or a list of texts", value)
    return tuple(_text(item, key) for item in (value if isinstance(value, list) else [value]))


def _label(value: Any, key: str) -> str:
    """Return a label. YAML reads yes, no, true, false, 1.0 and dates as other types, whose spelling is lost."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str) or not value:
        raise _expected(key, "labels; put quotation marks around each", value)
    if any(character in value for character in "\t\n\r"):
        raise InputError(
            f"{key}: the label {value!r} has a tab or a line break, which files of predictions cannot hold"
        )
    return value


def _labels(value: Any, key: str) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise _expected(key, "a list [a, b]", value)
    return tuple(_label(item, key) for item in value)


def _label_map(value: Any, key: str) -> dict[str, str]:
    """Return a map of labels; a list has the labels of the numbers from 0."""
    value = dict(enumerate(value)) if isinstance(value, list) else value
    if not isinstance(value, dict):
        raise _expected(key, "a map {from: to}, or a list of the labels of 0, 1, ...", value)
    return {_label(name, key): _label(item, key) for name, item in value.items()}


def _conditions(value: Any, key: str) -> dict[str | int, str]:
    if not isinstance(value, dict):
        raise _expected(key, "a map {column: value}", value)
    return {_single_column(column, key): _label(item, key) for column, item in value.items()}


def _columns(value: Any, key: str) -> dict[str, Column]:
    if not isinstance(value, dict):
        raise _expected(key, "a map {value: column}", value)
    return {str(role): _column(column, f"{key}.{role}") for role, column in value.items()}


def _column(value: Any, key: str) -> Column:
    if isinstance(value, list) and value:
        return tuple(_single_column(item, key) for item in value)
    return _single_column(value, key)


def _single_column(value: Any, key: str) -> str | int:
    if isinstance(value, bool) or not isinstance(value, (str, int)) or value == "" or value in range(-10000, 1):
        raise _expected(key, "the name of a column, or its number counted from 1", value)
    return value


def _number(value: Any, key: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value == 0:
        raise _expected(key, "the number of a column, counted from 1, or from -1 at the end", value)
    return value


def _flag(value: Any, key: str) -> bool:
    if not isinstance(value, bool):
        raise _expected(key, "true or false", value)
    return value


def _choice(*names: str) -> Parser:
    """Return a parser of one of these names; YAML reads `yes` and `no` as truth values."""

    def parse(value: Any, key: str) -> str:
        found = value if not isinstance(value, bool) else "yes" if value else "no"
        if found not in names:
            raise _expected(key, f"one of {', '.join(names)}", value)
        return str(found)

    return parse


def _range(value: Any, key: str) -> tuple[float, float]:
    numbers = [item for item in value if type(item) in (int, float)] if isinstance(value, list) else []
    if len(numbers) != 2 or len(value) != 2 or not numbers[0] < numbers[1]:
        raise _expected(key, "two numbers [least, greatest]", value)
    return float(numbers[0]), float(numbers[1])


TASK_KEYS = ("kind", "language", "layout", "files", "unlabelled", "metric", "name")
FIELDS: dict[str, Parser] = {
    "title": _text,
    "labels": _labels,
    "label_aliases": _label_map,
    "omitted_labels": _labels,
    "score_range": _range,
    "unanswerable": _flag,
    "empty_texts": _flag,
}
PARSERS: dict[str, Parser] = {
    "columns": _columns,
    "header": _choice("yes", "no", "auto"),
    "names": _texts,
    "list_separator": _text,
    "where": _conditions,
    "omit_short_rows": _flag,
    "clean": _choice(*CLEANERS),
    "classes": _labels,
    "token_column": _number,
    "tag_column": _number,
}
