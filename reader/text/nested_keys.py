"""Values of JSON objects inside each other."""

from __future__ import annotations

from typing import Any


def value_at(record: Any, key: str, default: Any = None) -> Any:
    """Return the value of a key of a JSON object. `doc.body` is the key `body` of the object under the key `doc`.

    A key that has the dot in its name comes first. Return `default` if there is no such key, or no object.
    """
    if not isinstance(record, dict):
        return default
    if key in record:
        return record[key]
    first, dot, rest = key.partition(".")
    return value_at(record.get(first), rest, default) if dot else default
