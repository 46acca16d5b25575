"""The table of results, and the JSON document with all figures."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from ernie_gram.gpu_checks.catalog import FIRST, NAMES
from ernie_gram.gpu_checks.outcome import Result
from reader.system.atomic_files import atomic_file

_WIDTH = max(map(len, NAMES))


def row(result: Result) -> str:
    """Return a line of the table."""
    return f"{result.status:<7}  {result.name:<{_WIDTH}}  {result.seconds:6.1f} s  {result.reason}"


def summary(results: Sequence[Result]) -> str:
    """Return the numbers of results of each kind."""
    counts = {status: sum(result.status == status for result in results) for status in ("PASS", "FAIL", "SKIPPED")}
    return ", ".join(f"{count} {status}" for status, count in counts.items())


def write_report(path: Path, results: Sequence[Result], quick: bool) -> None:
    """Write all results as JSON."""
    with atomic_file(path) as partial:
        partial.write_text(json.dumps(_document(results, quick), indent=1) + "\n", encoding="utf-8")


def _document(results: Sequence[Result], quick: bool) -> dict[str, Any]:
    device = next((result.figures for result in results if result.name == FIRST), {})
    return {
        "ernie_gram": _own_version(),
        "command": sys.argv[1:],
        "quick": quick,
        "written": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "device": device,
        "summary": summary(results),
        "checks": [_representable(result.as_dict()) for result in results],
    }


def _own_version() -> str:
    try:
        return version("ernie-gram")
    except PackageNotFoundError:
        return "unknown"


def _representable(value: Any) -> Any:
    """Return a value in which numbers that are not finite, which JSON lacks, are text."""
    if isinstance(value, dict):
        return {key: _representable(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_representable(each) for each in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
