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
import types
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from reader.errors import InputError, located, quoted, similar
from reader.system.installation import CONF, is_settings_file, settings_file
from reader.system.untrusted_text import read_yaml
from tasks.kinds.base import Kind
from tasks.kinds.catalog import KINDS, checked
from tasks.kinds.task import LANGUAGES, Source, Split, Task
from tasks.layouts.benchmarks import C3, Chid, Cluener, CluewscMarked, DuReaderDocuments, Race, Squad, TextFolders
from tasks.layouts.lines import JsonLines
from tasks.layouts.rows import Columns
from tasks.layouts.tables import Conll, Csv, Tsv

CONFIG = "--config"
SOURCES = "sources"
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


# The keys of every task, and the fields of Task that are keys too. The options of the layout are keys as well.
TASK_KEYS = ("kind", "language", "layout", "files", "unlabelled", "metric", "name")
FIELDS = (
    *("title", "labels", "label_aliases", "omitted_labels"),
    *("score_range", "unanswerable", "empty_texts"),
)


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
        return task_of(tree, path.stem)


def task_of(tree: dict[str, Any], default_name: str, further: Collection[str] = ()) -> Task:
    """Return the task that the keys of a YAML file describe; raises InputError that names the key.

    `further` are keys that only the registry has (see registry/__init__.py), SOURCES in place of `files` among them.
    """
    kind = KINDS[_one_of(tree, "kind", KINDS)]
    language = _one_of(tree, "language", LANGUAGES)
    layout_name = _one_of(tree, "layout", LAYOUTS)
    if layout_name not in kind.layouts:
        kinds = [each.name for each in KINDS.values() if layout_name in each.layouts]
        raise InputError(f"layout: {layout_name} holds {', '.join(kinds)}, not {kind.name}")
    options = {field.name: field for field in dataclasses.fields(LAYOUTS[layout_name])}
    known = {*TASK_KEYS, *FIELDS, *options, *further}
    for key in tree:
        if key not in known:
            raise InputError(f"unknown key {key}{similar(key, known)} (the layout is {layout_name})")
    for name, option in options.items():
        if name not in tree and option.default is option.default_factory is dataclasses.MISSING:
            raise InputError(f"{name}: is missing; the layout {layout_name} needs it")
    if isinstance(aliases := tree.get("label_aliases"), list):
        tree = {**tree, "label_aliases": dict(enumerate(aliases))}
    layout = _layout(tree)
    if "columns" in options:
        _check_roles(kind, layout.columns)
    fields = _values(Task, tree, (*FIELDS, *(key for key in further if key != SOURCES)))
    for name in fields:
        kinds = [each.name for each in KINDS.values() if name in each.task_fields]
        if kinds and kind.name not in kinds:
            raise InputError(f"{name}: is for {', '.join(kinds)}, not for {kind.name}; remove it")
    name = _value(tree.get("name", default_name), str, "name")
    fields = {"name": name, "title": name, "metric": _value(tree.get("metric"), str, "metric"), **fields}
    splits = _splits(tree, is_registry=SOURCES in further)
    return checked(Task(kind=kind.name, language=language, layout=layout, splits=splits, **fields))


def _layout(tree: dict[str, Any]) -> Any:
    """Return the layout that the keys of a tree describe."""
    layout_type = LAYOUTS[tree["layout"]]
    return layout_type(**_values(layout_type, tree, [field.name for field in dataclasses.fields(layout_type)]))


def _source(value: Any) -> Source:
    """Return a source of the registry: a file, a list of files, or a map with `files` and the keys of a layout."""
    files, layout = (value["files"], _layout(value)) if isinstance(value, dict) else (value, None)
    return Source((files,) if isinstance(files, str) else tuple(files), layout)


def _check_roles(kind: type[Kind[Any, Any]], columns: Columns) -> None:
    names = [role.name for role in kind.roles]
    for name in columns:
        if name not in names:
            raise InputError(f"columns: {name!r} is no value of {kind.name} ({', '.join(names)}){similar(name, names)}")
    for role in kind.roles:
        if role.needed and role.name not in columns:
            raise InputError(f"columns: {role.name} is missing; give its column by name, or by number counted from 1")


def _splits(tree: dict[str, Any], is_registry: bool) -> dict[str, Split]:
    """Return the splits; each has sources, of which `files` of a custom task gives one: a file, or a list of files."""
    unlabelled = _value(tree.get("unlabelled", []), tuple[str, ...], "unlabelled")
    sources: dict[str, Any] = tree[SOURCES] if is_registry else {}
    if not is_registry:
        files = _value(tree.get("files"), Mapping[str, str | tuple[str, ...]], "files")
        sources = {split: [names] for split, names in files.items()}
    for name in unlabelled:
        if name not in sources:
            raise InputError(f"unlabelled: there is no split {name!r} in `files`{similar(name, sources)}")
    splits = {}
    for split, alternatives in sources.items():
        if not all(alternatives):
            raise InputError(f"files.{split}: there is no file")
        labelled = split not in unlabelled
        splits[split] = Split(tuple(map(_source, alternatives)), labelled, needed=labelled and not is_registry)
    return splits


def _one_of(tree: dict[str, Any], key: str, known: Collection[Any]) -> Any:
    value, names = tree.get(key), ", ".join(known)
    if value is None:
        raise InputError(f"{key}: is missing; give one of {names}")
    if not isinstance(value, str) or value not in known:
        raise InputError(f"{key}: {value!r} is none of {names}{similar(value, known)}")
    return value


def _values(owner: type, tree: dict[str, Any], names: Collection[str]) -> dict[str, Any]:
    """Return the values of the keys that are fields of a dataclass, as the types of these fields require."""
    hints = get_type_hints(owner)
    return {name: _value(tree[name], hints[name], name) for name in names if name in tree}


def _value(value: Any, hint: Any, key: str) -> Any:
    """Return a value of YAML as a type requires; raises InputError that names the key.

    A whole number is also a text. Other values that YAML does not read as texts, such as yes, 1.0 and dates, are
    refused where a text is needed, because their spelling is lost.
    """
    alternatives = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    for each in sorted(alternatives, key=lambda each: each is str):
        kind, inner = get_origin(each) or each, get_args(each)
        if kind is Literal and (word := ("no", "yes")[value] if isinstance(value, bool) else value) in inner:
            return word
        if kind is Mapping and isinstance(value, dict):
            return {
                _value(name, inner[0], key): _value(item, inner[1], f"{key}.{name}") for name, item in value.items()
            }
        if kind is tuple and isinstance(value, list) and (inner[-1] is ... or len(value) == len(inner)):
            return tuple(_value(item, inner[0], key) for item in value)
        if kind is float and type(value) in (int, float):
            return float(value)
        if kind in (int, bool) and type(value) is kind:
            return value
        if kind is str and type(value) in (int, str) and value != "":
            return str(value)
    advice = "docs/tasks.md gives the form; put texts such as yes in quotation marks"
    raise InputError(f"{key}: {'is missing' if value is None else f'found {quoted(value)}'}; {advice}")
