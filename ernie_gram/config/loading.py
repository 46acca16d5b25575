"""Read a configuration dataclass from a YAML file and the command line.

A file states only what differs from the defaults, or from the file that its `base:` key names, relative to its own
folder. The settings of this project are found by their names, conf/..., from every folder.
"""

from __future__ import annotations

import dataclasses
import math
import re
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

import yaml
from docstring_parser import parse as parse_docstring
from jsonargparse import ArgumentError, ArgumentParser

from reader.errors import InputError, OneLineParser, similar
from reader.system.installation import settings_file
from reader.system.untrusted_text import check_yaml, read_yaml

Tree = dict[str, Any]
Config = TypeVar("Config")


def load_config(config_type: type[Config], arguments: list[str], *flags: str) -> tuple[Config, set[str]]:
    """Parse `--config FILE`, dotted overrides such as `--data.batch_size 32`, and the program's own flags.

    Args:
        config_type: a dataclass whose fields have defaults; its sections are dataclasses too.
        arguments: the command line without the program's name.
        flags: their names.
    Returns:
        The configuration, and the names of all flags and the dotted keys of all settings that files or options give.

    `--print_config` prints the configuration, every field explained, and exits. Raises InputError that names the file
    or the key, and for an unknown key the most similar known one.
    """
    first = OneLineParser(add_help=False, allow_abbrev=False)
    first.add_argument("--config")
    flags = ("print_config", *flags)
    for flag in flags:
        first.add_argument(f"--{flag}", action="store_true")
    known, overrides = first.parse_known_args(arguments)
    options = [argument[2:].partition("=")[0] for argument in overrides if argument.startswith("--")]
    for key in options:
        _check_key(config_type, key, "command line")
    files: dict[str, Path] = {}
    if sum(argument.partition("=")[0] == "--config" for argument in arguments) > 1:
        raise InputError(
            f"--config: given twice; begin {known.config} with `base: FILE` to change the settings of a file"
        )
    values = read_values(config_type, settings_file(Path(known.config)), files) if known.config else {}
    kept = {key: value for key, value in values.items() if key not in options}
    config = _parse(config_type, kept, overrides, files)
    if known.print_config:
        sys.stdout.write(explained_yaml(config))
        sys.exit(0)
    return config, {flag for flag in flags if getattr(known, flag)} | values.keys() | set(options)


def config_from_tree(config_type: type[Config], tree: Tree, source: str) -> Config:
    """Return the configuration in nested dicts, for example those of a checkpoint; `source` names it in errors."""
    values = _values(config_type, tree, source)
    return _parse(config_type, values, [], dict.fromkeys(values, source))


@cache
def _parser(config_type: type) -> ArgumentParser:
    parser = ArgumentParser(exit_on_error=False, add_help=False)
    parser.add_class_arguments(config_type)
    return parser


def _parse(config_type: type[Config], flat: Tree, overrides: list[str], places: Mapping[str, object]) -> Config:
    """Type-check settings with jsonargparse: values by dotted key, and other ones of the command line.

    `places` has the file of each key, for errors.
    """
    for key, value in flat.items():
        check_yaml(as_argument(value), f"{places[key]}: {key}")
    known: Any = config_type
    parser, types = _parser(known), all_keys(known)
    try:
        parsed = parser.parse_args([*(f"--{key}={as_argument(value)}" for key, value in flat.items()), *overrides])
    except ArgumentError as error:
        message = " ".join(str(error).split())
        found = re.search(r'Parser key "([\w.]+)":.* (?:Got|Given) value: (.*)', message)
        if not found or found[1] not in types:
            raise InputError(f"command line: {message}") from error
        where = places[found[1]] if found[1] in flat else "command line"
        raise InputError(f"{where}: {found[1]}: expected {types[found[1]]}, got {found[2]}") from error
    try:
        parsed = parser.instantiate_classes(parsed)
    except ArgumentError as error:
        raise InputError(" ".join(str(error).split())) from error
    return config_type(**{name: getattr(parsed, name) for name in get_type_hints(config_type)})


def read_values(config_type: type, path: Path, files: dict[str, Path]) -> Tree:
    """Return the values of a config file and of its `base:` by dotted key; raises InputError for unknown keys.

    Adds to `files` the file that sets each key.
    """
    tree = read_yaml(path)
    base = tree.pop("base", None)
    own, inherited = _values(config_type, tree, str(path)), Tree()
    if base is not None:
        base_path = path.parent / str(base)
        if "base" in read_yaml(base_path):
            raise InputError(f"{base_path}: has a base of its own; only one level of `base:` is allowed")
        inherited = read_values(config_type, base_path, files)
    files |= dict.fromkeys(own, path)
    return inherited | own


def _values(config_type: type, tree: Tree, source: str) -> Tree:
    """Return the values by dotted key; raises InputError for unknown keys. A section may be empty, or null."""
    sections = {key.rpartition(".")[0] for key in all_keys(config_type)}
    values = {key: value for key, value in flatten(tree).items() if key not in sections or value not in ({}, None)}
    for key in values:
        _check_key(config_type, key, source)
    return values


def flatten(tree: Tree, prefix: str = "") -> Tree:
    """Return {"a.b": 1} for {"a": {"b": 1}}."""
    flat: Tree = {}
    for key, value in tree.items():
        is_section = isinstance(value, dict) and value
        flat |= flatten(value, f"{prefix}{key}.") if is_section else {f"{prefix}{key}": value}
    return flat


@cache
def all_keys(config_type: type, prefix: str = "") -> dict[str, str]:
    """Return every dotted key of a config dataclass, with its type as it is written there."""
    keys: dict[str, str] = {}
    for field in dataclasses.fields(config_type):
        kind, name = get_type_hints(config_type)[field.name], f"{prefix}{field.name}"
        is_section = dataclasses.is_dataclass(kind)
        keys |= all_keys(kind, f"{name}.") if is_section else {name: str(field.type)}
    return keys


def _check_key(config_type: type, key: str, where: str) -> None:
    """Raise InputError for an unknown key; suggest the same last part, or else the most similar key."""
    keys = all_keys(config_type)
    if key not in keys:
        same_name = [known for known in keys if known.rpartition(".")[2] == key.rpartition(".")[2]]
        hint = f"; did you mean {same_name[0]}?" if same_name else similar(key, keys)
        raise InputError(f"{where}: unknown key {key}{hint}")


def as_argument(value: Any) -> str:
    """Return a value of a YAML file as the command line has it."""
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def explained_yaml(config: Any, indent: str = "") -> str:
    """Return a config as YAML that can be read back; a comment from the docstring precedes each field."""
    explained = [p for kind in reversed(type(config).__mro__) for p in parse_docstring(kind.__doc__ or "").params]
    meanings = {p.arg_name: " ".join((p.description or "").split()) for p in explained}
    text = ""
    for name in get_type_hints(type(config)):
        value = getattr(config, name)
        text += f"{indent}# {meanings[name]}\n"
        if dataclasses.is_dataclass(value):
            text += f"{indent}{name}:\n" + explained_yaml(value, indent + "  ")
        else:
            text += f"{indent}{yaml.safe_dump({name: value}, width=math.inf).strip()}\n"
    return text
