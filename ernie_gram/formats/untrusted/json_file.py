"""Read JSON objects from files of unknown origin."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NoReturn

from ernie_gram.formats.untrusted.arrays import quoted
from reader.errors import InputError

MAX_BYTES = 10_000_000


def read_json(path: Path, max_bytes: int = MAX_BYTES) -> dict[str, Any]:
    """Return the JSON object of a file of at most `max_bytes`.

    Raises InputError with the position if it is not valid JSON in UTF-8, for values other than an object, for a key
    that occurs twice (parsers disagree about which value counts), for NaN and infinity, and for deep nesting.
    """
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    with path.open("rb") as file:
        data = file.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise InputError(f"{path}: larger than {max_bytes:,} bytes, the limit for this file")
    try:
        value = json.loads(data.decode("utf-8-sig"), object_pairs_hook=_distinct, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        raise InputError(f"{path}: line {error.lineno}, column {error.colno}: {error.msg}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: byte {error.start} is not valid UTF-8") from error
    except ValueError as error:
        raise InputError(f"{path}: {error}") from error
    except RecursionError as error:
        raise InputError(f"{path}: nested too deeply") from error
    if not isinstance(value, dict):
        raise InputError(f"{path}: holds a {type(value).__name__}, not a JSON object of keys and values")
    return value


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {quoted(key)} occurs twice in one object")
        found[key] = value
    return found


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number in JSON")
