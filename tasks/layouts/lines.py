"""Lines and JSON values of files that come from outside."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from reader.errors import InputError
from reader.system.untrusted_text import json_value
from reader.text.text_files import convert_read_errors, utf16_reason
from tasks.layouts.rows import BadRow, Place


class UnreadableError(InputError):
    """A text is not UTF-8 or not JSON.

    Attributes:
        row: the place of the error and the reason, for layouts that go on with the next row.
    """

    def __init__(self, place: Place, reason: str) -> None:
        super().__init__(f"{place}: {reason}")
        self.row = BadRow(place, reason)


def read_lines(path: Path) -> Iterator[tuple[Place, str | BadRow]]:
    """Yield the place of each line of a file, and its text without the line end, or a bad row if it is not UTF-8.

    Only a line feed ends a line, because texts hold U+2028, U+0085 and other characters at which Python's `splitlines`
    breaks. A carriage return before the line feed and a byte order mark at the start are removed. Blank lines at the
    end are left out. Raises InputError for a file that cannot be read, and UnreadableError for one that looks
    like UTF-16.
    """
    blank: list[Place] = []
    with convert_read_errors(path), path.open("rb") as file:
        for number, raw in enumerate(file, 1):
            place = Place(path, number)
            if number == 1 and (reason := utf16_reason(path, raw)):
                raise UnreadableError(Place(path), reason)
            content = raw.removeprefix(codecs.BOM_UTF8) if number == 1 else raw
            content = content.removesuffix(b"\n").removesuffix(b"\r")
            if not content:
                blank.append(place)
                continue
            yield from ((earlier, "") for earlier in blank)
            blank.clear()
            yield place, _decoded(content, place)


def _decoded(content: bytes, place: Place) -> str | BadRow:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        return BadRow(place, f"not UTF-8 ({error.reason}); convert the file to UTF-8")


def read_text(path: Path) -> str:
    """Return the text of a file without a byte order mark.

    Raises UnreadableError, with the line of the error, if it is not UTF-8, and InputError if it cannot be read.
    """
    with convert_read_errors(path):
        content = path.read_bytes().removeprefix(codecs.BOM_UTF8)
    if reason := utf16_reason(path, content):
        raise UnreadableError(Place(path), reason)
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        place = Place(path, content[: error.start].count(b"\n") + 1)
        raise UnreadableError(place, f"not UTF-8 ({error.reason}); convert the file to UTF-8") from error


def parse_json(text: str, place: Place) -> Any:
    """Return the value of a JSON text. Raises UnreadableError, with the line of the error, if it is not JSON."""
    try:
        return json_value(text)
    except json.JSONDecodeError as error:
        line = (place.line or 1) + error.lineno - 1
        raise UnreadableError(Place(place.file, line), f"not JSON: {error.msg} at column {error.colno}") from error
    except ValueError as error:  # a number of too many digits; too deep a nesting
        raise UnreadableError(place, f"not JSON: {error}") from error


def read_json(path: Path) -> Any:
    """Return the value of a JSON file; raises InputError as `read_text` and `parse_json` do."""
    return parse_json(read_text(path), Place(path))


def json_objects(path: Path) -> Iterator[tuple[Place, dict[str, Any] | BadRow]]:
    """Yield the JSON object of each line of a file, or a bad row if the line holds none."""
    for place, line in read_lines(path):
        if isinstance(line, BadRow):
            yield place, line
            continue
        try:
            value = parse_json(line, place)
        except UnreadableError as error:
            yield place, error.row
            continue
        is_object = isinstance(value, dict)
        yield place, value if is_object else BadRow(place, f"expected a JSON object {{...}}, found {line[:40]!r}")
