"""Tables of a report as data: numbers with as many decimals as their column needs, and the exact values beside."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from ernie_gram.reporting.runs import ReportedRun

PERCENT = " %"
# From this value on, a column has this number of decimals.
DECIMALS = ((1000.0, 0), (100.0, 1), (1.0, 2), (0.0, 4))


class Cell(NamedTuple):
    """A cell of a table that holds a number.

    Attributes:
        exact: what is shown when the pointer is over it.
    """

    text: str
    exact: str = ""


class Table(NamedTuple):
    """A table; the first cell of a row is its heading. Cells are strings or Cells."""

    head: Sequence[Any]
    rows: Sequence[Sequence[Any]]
    caption: str = ""


def column(values: Sequence[float | None], scale: float = 1.0, unit: str = "") -> list[Cell]:
    """Return the cells of a column.

    Args:
        values: that of each cell; None is shown as missing.
        scale: factor of the numbers that are shown, 100 for percent; exact values are not scaled.
        unit: text after each number.
    """
    sizes = [abs(scale * each) for each in values if each is not None and math.isfinite(each)]
    decimals = next(decimals for least, decimals in DECIMALS if max(sizes, default=0.0) >= least)
    decimals = 0 if all(map(float.is_integer, map(float, sizes))) else min(decimals, 2 if unit == PERCENT else 4)
    return [
        Cell("–") if value is None else Cell(f"{scale * value:,.{decimals}f}{unit}", repr(value)) for value in values
    ]


def settings_tables(runs: Sequence[ReportedRun]) -> tuple[Table, Table]:
    """Return the settings in which runs differ, and all settings, as they are written in YAML."""
    keys = dict.fromkeys(key for run in runs for key in run.settings if key != "paths.output")
    rows = [[key, *(_as_written(run.settings.get(key, "")) for run in runs)] for key in keys]
    head = ["setting", *(run.name for run in runs)]
    return Table(head, [row for row in rows if len({*row[1:]}) > 1]), Table(head, rows)


def _as_written(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
