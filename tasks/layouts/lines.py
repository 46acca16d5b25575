"""Lines and JSON values of files that come from outside, and files with one JSON object a line (CLUE)."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reader.errors import similar
from reader.system.untrusted_text import json_value
from reader.text.text_files import convert_read_errors, utf16_reason, value_at
from tasks.layouts.rows import (
    BadRow,
    Cleaner,
    Columns,
    Layout,
    Place,
    Wanted,
    cleaned,
    made,
    single_columns,
    value_of,
)


def read_lines(path: Path) -> Iterator[tuple[Place, str | BadRow]]:
    """Yield the place of each line of a file, and its text without the line end, or a bad row if it is not UTF-8.

    Only a line feed ends a line, because texts hold U+2028, U+0085 and other characters at which Python's `splitlines`
    breaks. A carriage return before the line feed and a byte order mark at the start are removed. Blank lines at the
    end are left out. Raises InputError for a file that cannot be read, and BadRow for one that looks
    like UTF-16.
    """
    blank: list[Place] = []
    with convert_read_errors(path), path.open("rb") as file:
        for number, raw in enumerate(file, 1):
            place = Place(path, number)
            if number == 1 and (reason := utf16_reason(raw)):
                raise BadRow(reason, Place(path))
            content = raw.removeprefix(codecs.BOM_UTF8) if number == 1 else raw
            content = content.removesuffix(b"\n").removesuffix(b"\r")
            if not content:
                blank.append(place)
                continue
            yield from ((earlier, "") for earlier in blank)
            blank.clear()
            yield place, made(place, decoded, content, place)


def decoded(content: bytes, place: Place) -> str:
    """Return the text of some lines, of which `place` has the first; raises BadRow with the line that is not UTF-8."""
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = (place.line or 1) + content[: error.start].count(b"\n")
        raise BadRow(f"not UTF-8 ({error.reason}); convert the file to UTF-8", place._replace(line=line)) from error


def read_text(path: Path) -> str:
    """Return the text of a file without a byte order mark.

    Raises BadRow, with the line of the error, if it is not UTF-8, and InputError if it cannot be read.
    """
    with convert_read_errors(path):
        content = path.read_bytes().removeprefix(codecs.BOM_UTF8)
    if reason := utf16_reason(content):
        raise BadRow(reason, Place(path))
    return decoded(content, Place(path))


def parse_json(text: str, place: Place) -> Any:
    """Return the value of a JSON text. Raises BadRow, with the line of the error, if it is not JSON."""
    try:
        return json_value(text)
    except json.JSONDecodeError as error:
        line = (place.line or 1) + error.lineno - 1
        raise BadRow(f"not JSON: {error.msg} at column {error.colno}", Place(place.file, line)) from error
    except ValueError as error:  # a number of too many digits; too deep a nesting
        raise BadRow(f"not JSON: {error}", place) from error


def read_json(path: Path) -> Any:
    """Return the value of a JSON file; raises InputError as `read_text` and `parse_json` do."""
    return parse_json(read_text(path), Place(path))


def json_objects(path: Path) -> Iterator[tuple[Place, dict[str, Any] | BadRow]]:
    """Yield the JSON object of each line of a file, or a bad row if the line holds none."""
    for place, line in read_lines(path):
        value = line if isinstance(line, BadRow) else made(place, parse_json, line, place)
        is_row = isinstance(value, dict | BadRow)
        yield place, value if is_row else BadRow(f"expected a JSON object {{...}}, found {str(line)[:40]!r}", place)


MISSING = object()


class ObjectLines(Layout):
    """Files with one JSON object a line, each of which makes a row."""

    def items(self, path: Path, wanted: Wanted) -> Iterator[tuple[Place, Any]]:
        """Yield the object of each line."""
        return json_objects(path)


@dataclass(frozen=True)
class JsonLines(ObjectLines):
    """JSON objects, one a line.

    Attributes:
        columns: the key of each value; `doc.body` is the key `body` of the object under `doc`. A list of texts under
            the key of a text is joined by spaces (CSL's keywords).
        clean: a change of the texts, see rows.CLEANERS.
    """

    columns: Columns
    clean: Cleaner | None = None

    def values(self, record: Mapping[str, Any], wanted: Wanted) -> Mapping[str, Any]:
        """Return the values under the keys."""
        values: dict[str, Any] = {}
        for name, column in self.columns.items():
            if (role := wanted.get(name)) is None:
                continue
            keys = [str(key) for key in single_columns(column)]
            found = [value_at(record, key, MISSING) for key in keys]
            missing = next((key for key, value in zip(keys, found, strict=True) if value is MISSING), None)
            if missing is None:
                values[name] = value_of(role, found)
            elif not role.may_lack:
                raise BadRow(f"no key {missing!r} in the object{similar(missing, list(record))}")
        return cleaned(values, self.clean)
