"""The file of results of a sweep: a record for each finished run, as a line of JSON. No Paddle here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ernie_gram.run.run_log import read_json_lines

RESULTS = "results.jsonl"


def read_results(folder: Path) -> tuple[dict[str, dict[str, Any]], list[int]]:
    """Return the records by the name of the run, the last one of each, and the numbers of broken lines."""
    found, broken = read_json_lines(folder / RESULTS)
    return {str(record["run"]): record for record in found if isinstance(record.get("result"), dict)}, broken


def append_result(folder: Path, record: dict[str, Any]) -> None:
    """Append a record; half a line of a killed command, which may end within a character, is ended first."""
    path = folder / RESULTS
    before = path.read_bytes() if path.is_file() else b""
    beginning = "" if not before or before.endswith(b"\n") else "\n"
    with path.open("a", encoding="utf-8") as file:
        file.write(f"{beginning}{json.dumps(record, ensure_ascii=False)}\n")
