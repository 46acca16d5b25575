"""The results of a study: a file of JSON lines with a record for each finished run. Records are only appended."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ernie_gram.config.checks import require
from reader.errors import InputError, print_warning
from reader.system.atomic_files import write_atomically
from reader.system.untrusted_text import json_value

Record = dict[str, Any]
BEGINNING = '{"run": '  # of every record


def read_results(path: Path) -> list[Record]:
    """Return the records of a file of results, none if there is no such file; a broken last line is left out.

    Raises InputError that names the line for any other line that is not a record, and for a second record of a run.
    """
    return _parsed(path)[0]


def repair_results(path: Path) -> None:
    """Remove a broken last line, which a killed process left behind, with a warning."""
    _, broken = _parsed(path)
    # Only a broken last line may end within a character.
    text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    if broken:
        print_warning(f"{path}: its last line is broken and was removed; its run counts as missing")
        text = text[: len(text) - len(broken)]
    if broken or (text and not text.endswith("\n")):
        write_atomically(path, text if not text or text.endswith("\n") else f"{text}\n")


def append_record(path: Path, record: Mapping[str, Any]) -> None:
    """Append a record to a file that ends with a whole line, and flush it to the disk."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(record, ensure_ascii=False) + "\n")
        file.flush()
        os.fsync(file.fileno())


def _parsed(path: Path) -> tuple[list[Record], str]:
    """Return the records, and the text of a broken last line."""
    records: dict[str, Record] = {}
    require(not path.is_dir(), str(path), "is a folder; give the path of a file")
    text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    # Not `splitlines`, which also ends lines at other characters.
    lines = re.findall(r"[^\n]*\n|[^\n]+$", text)
    for number, line in enumerate(lines, 1):
        record = _record(line)
        if record is None:
            if number == len(lines) and (line.startswith(BEGINNING[: len(line)]) or not line.strip("\0 \r\n")):
                return list(records.values()), line
            raise InputError(f"{path}, line {number}: not a result of a study; restore the file, or remove the line")
        if record["run"] in records:
            raise InputError(f"{path}, line {number}: a second result of {record['run']}; remove one of them")
        records[record["run"]] = record
    return list(records.values()), ""


def _record(line: str) -> Record | None:
    try:
        value = json_value(line)
    except ValueError:
        return None
    return value if isinstance(value, dict) and {"run", "kind", "digest", "result"} <= value.keys() else None
