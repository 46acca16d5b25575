"""Tables of a report as data: numbers with as many decimals as their column needs, and the exact values beside."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from statistics import fmean
from typing import Any, NamedTuple

from ernie_gram.reporting.runs import ReportedRun, inner, is_number

PERCENT = " %"
# From this value on, a column has this number of decimals.
DECIMALS = ((1000.0, 0), (100.0, 1), (1.0, 2), (0.0, 4))


class Cell(NamedTuple):
    """A cell of a table that holds a number.

    Attributes:
        exact: what is shown when the pointer is over it.
        small: what is shown below.
    """

    text: str
    exact: str = ""
    small: str = ""


class Table(NamedTuple):
    """A table; the first cell of a row is its heading. Cells are strings or Cells."""

    head: Sequence[Any]
    rows: Sequence[Sequence[Any]]
    caption: str = ""


def column(values: Sequence[Sequence[float]], scale: float = 1.0, unit: str = "") -> list[Cell]:
    """Return the cells of a column: in each the mean of some values, and their range if there are several.

    Args:
        values: those of each cell; a cell without values is shown as missing.
        scale: factor of the numbers that are shown, 100 for percent; exact values are not scaled.
        unit: text after each number.
    """
    sizes = [abs(scale * each) for cell in values if cell for each in (*cell, fmean(cell)) if math.isfinite(each)]
    decimals = next(decimals for least, decimals in DECIMALS if max(sizes, default=0.0) >= least)
    decimals = 0 if all(map(float.is_integer, map(float, sizes))) else min(decimals, 2 if unit == PERCENT else 4)
    cells = []
    for cell in values:
        exact = ", ".join(map(repr, cell))
        low, mean, high = (f"{scale * f(cell):,.{decimals}f}" if cell else "–" for f in (min, fmean, max))
        if len({*cell}) > 1:
            cells.append(Cell(mean + unit, f"mean of {exact}", f"{low} – {high}"))
        else:
            cells.append(Cell(low + unit if cell else low, exact))
    return cells


def settings_tables(runs: Sequence[ReportedRun]) -> tuple[Table, Table]:
    """Return the settings in which runs differ, and all settings, as they are written in YAML."""
    keys = dict.fromkeys(key for run in runs for key in run.settings if key != "paths.output")
    rows = [[key, *(_as_written(run.settings.get(key, "")) for run in runs)] for key in keys]
    head = ["setting", *(run.name for run in runs)]
    return Table(head, [row for row in rows if len({*row[1:]}) > 1]), Table(head, rows)


def _as_written(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def results_table(records: Sequence[dict[str, Any]], caption: str) -> Table:
    """Return the results of a sweep, with a row for each combination of what it varies besides seeds."""
    rows: dict[tuple[tuple[str, str], ...], list[dict[str, Any]]] = {}
    for record in records:
        varied = {"kind": record.get("kind"), "task": record.get("task"), **inner(record, "varied")}
        rows.setdefault(tuple((key, str(value)) for key, value in varied.items() if value), []).append(record["result"])
    keys = list(dict.fromkeys(key for row in rows for key, _ in row))
    names = list(dict.fromkeys(name for of_row in rows.values() for one in of_row for name in one))
    columns = [column([[one[n] for one in of_row if is_number(one.get(n))] for of_row in rows.values()]) for n in names]
    first = [[dict(row).get(key, "") for key in keys] + [Cell(str(len(of_row)))] for row, of_row in rows.items()]
    body = [[*before, *cells] for before, *cells in zip(first, *columns, strict=True)]
    return Table([*keys, *map(Cell, ("runs", *names))], body, caption)
