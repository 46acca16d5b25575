"""JSON and YAML of unknown origin, read within limits: of bytes, of depth, of digits, and of what aliases repeat.

`json_value` and `yaml_value` take a text and raise ValueError. `read_json` and `read_yaml` take a file, and their
InputError names it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Hashable
from pathlib import Path
from typing import Any, NoReturn, TypeVar, get_origin, get_type_hints

import yaml

from reader.errors import InputError, quoted

MAX_BYTES = 10_000_000
MAX_YAML_BYTES = 1_000_000
MAX_DEPTH = 100
MAX_DIGITS = 100  # more take long to convert, or do not fit into a floating-point number
# Values in a YAML file, each counted as often as aliases repeat it: printing them writes all of them.
MAX_VALUES = 100_000
# A name of a file in a folder, or a part of it.
FILE_NAME = re.compile(r"(?!\.\.?$)[^/\\\x00-\x1f]{1,100}")

Record = TypeVar("Record")
TOO_DEEP = f"nested too deeply, in more than {MAX_DEPTH} levels"
NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")


def limited_text(path: Path, max_bytes: int = MAX_BYTES) -> str:
    """Return the text of a UTF-8 file without a byte order mark.

    Raises InputError if it is larger than `max_bytes`, ValueError if it is not UTF-8, and OSError.
    """
    with path.open("rb") as file:
        data = file.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise InputError(f"{path}: larger than {max_bytes:,} bytes, the limit for this file")
    return data.decode("utf-8-sig")


def _whole_number(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise ValueError(f"a number of {len(digits):,} digits; at most {MAX_DIGITS} are read")
    return int(digits)


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {quoted(key)} occurs twice in one object")
        found[key] = value
    return found


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number in JSON")


_PLAIN = json.JSONDecoder(parse_int=_whole_number)
_STRICT = json.JSONDecoder(parse_int=_whole_number, parse_constant=_refuse, object_pairs_hook=_distinct)


def json_value(text: str, decoder: json.JSONDecoder = _PLAIN) -> Any:
    """Return the value of a JSON text; raises ValueError if it is not JSON or beyond the limits."""
    try:
        value = decoder.decode(text)
    except RecursionError as error:
        raise ValueError(TOO_DEEP) from error
    if text.count("[") + text.count("{") > MAX_DEPTH and _is_deep(value):
        raise ValueError(TOO_DEEP)
    return value


def read_json(path: Path, max_bytes: int = MAX_BYTES) -> dict[str, Any]:
    """Return the JSON object of a file of at most `max_bytes`.

    Raises InputError with the position if it is not valid JSON in UTF-8, for values other than an object, for a key
    that occurs twice (parsers disagree about which value counts), for NaN and infinity, and beyond the limits.
    """
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    try:
        value = json_value(limited_text(path, max_bytes), _STRICT)
    except ValueError as error:
        raise InputError(f"{path}: {error}") from error
    if not isinstance(value, dict):
        raise InputError(f"{path}: holds a {type(value).__name__}, not a JSON object of keys and values")
    return value


def record_of(kind: type[Record], value: Any, where: str) -> Record:
    """Return a dataclass whose values are those of a JSON object; its numbers are counts, of 0 and more.

    Raises InputError, which names `where` and the key, for unknown and missing keys and values of another type.
    """
    if not isinstance(value, dict):
        raise InputError(f"{where}: expected an object of keys and values, found {quoted(value)}")
    types = get_type_hints(kind)
    for key, part in value.items():
        type_ = get_origin(types.get(key)) or types.get(key)
        if type(part) is not type_ or (type_ is int and part < 0):
            expected = getattr(type_, "__name__", "no such key")
            raise InputError(f"{where}: {quoted(key)} is {quoted(part)}; expected {expected}")
    try:
        return kind(**value)
    except TypeError as error:
        raise InputError(f"{where}: {error}") from error


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(MAX_DEPTH):
        inner = (each.values() if isinstance(each, dict) else each for each in level if isinstance(each, dict | list))
        level = [part for parts in inner for part in parts]
    return bool(level)


class _Loader(yaml.SafeLoader):
    """A YAML loader with limits that also refuses a key that is given twice.

    YAML forbids such a key, but PyYAML would take the last value.
    """

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.name = "this text"  # in PyYAML's errors
        self.depth = self.values = 0
        self.repeated: dict[str, int] = {}  # the number of values that the alias of each anchor stands for

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Return the next value, or the one that an alias repeats; raises ValueError beyond the limits."""
        anchor: str | None = self.peek_event().anchor
        is_alias = self.check_event(yaml.AliasEvent)
        before, self.depth = self.values, self.depth + 1
        if self.depth > MAX_DEPTH:
            raise ValueError(TOO_DEEP)
        node = super().compose_node(parent, index)
        # An alias within its own anchor is not finished: it would repeat without end.
        self.values += self.repeated.get(str(anchor), MAX_VALUES) if is_alias else 1
        if self.values > MAX_VALUES:
            raise ValueError(f"more than {MAX_VALUES:,} values, counted as often as aliases repeat them")
        if isinstance(node, yaml.ScalarNode) and node.tag in NUMBERS and len(node.value) > MAX_DIGITS:
            raise ValueError(f"a number of {len(node.value):,} characters; at most {MAX_DIGITS} are read")
        if anchor is not None and not is_alias:
            self.repeated[anchor] = self.values - before
        self.depth -= 1
        return node

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """Return a mapping; raises ValueError for a key that is given twice."""
        lines: dict[str, int] = {}
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                line = key.start_mark.line + 1
                if key.value in lines:
                    raise ValueError(f"line {line}: {key.value} is given twice, first in line {lines[key.value]}")
                lines[key.value] = line
        return super().construct_mapping(node, deep)


def yaml_value(text: str) -> Any:
    """Return the value of a YAML text; raises ValueError if it is not YAML or beyond the limits."""
    try:
        return _Loader(text).get_single_data()
    except yaml.YAMLError as error:
        raise ValueError(f"not YAML: {error}") from error


def check_yaml(text: str, where: str) -> None:
    """Raise InputError, which names `where`, for YAML beyond the limits, before another library reads it."""
    try:
        _Loader(text).get_single_node()
    except ValueError as error:
        raise InputError(f"{where}: {error}") from error
    except yaml.YAMLError:
        pass


def read_yaml(path: Path) -> dict[str, Any]:
    """Return the keys of a YAML file; raises InputError for other files, keys given twice and beyond the limits."""
    try:
        tree = yaml_value(limited_text(path, MAX_YAML_BYTES))
    except OSError as error:
        raise InputError(f"{path}: cannot read the config: {error.strerror}") from error
    except ValueError as error:
        raise InputError(f"{path}: {error}") from error
    if tree is None:
        return {}
    if not isinstance(tree, dict):
        raise InputError(f"{path}: expected `key: value` lines, found {type(tree).__name__}")
    return tree
