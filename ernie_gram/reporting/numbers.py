"""Numbers as a table shows them: as many decimals as the largest of a column needs, and the exact value on hover."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import fmean

from ernie_gram.reporting.markup import Cell, element, joined

MISSING = Cell("–", style="n")
PERCENT = " %"
# From this value on, a column has this number of decimals.
DECIMALS = ((1000.0, 0), (100.0, 1), (1.0, 2), (0.0, 4))


def decimals_of(values: Iterable[float]) -> int:
    """Return the decimals for the numbers of a column, 0 if they are all whole."""
    finite = [abs(value) for value in values if math.isfinite(value)]
    if all(value == int(value) for value in finite):
        return 0
    return next(decimals for least, decimals in DECIMALS if max(finite) >= least)


def shown(value: float, decimals: int) -> str:
    """Return a number with thousands separators; NaN and infinity by their names."""
    return f"{value:,.{decimals}f}" if math.isfinite(value) else str(value)


def exact(value: float) -> str:
    """Return a number with all its digits."""
    return str(int(value)) if math.isfinite(value) and value == int(value) else repr(float(value))


def column(values: Sequence[Sequence[float]], scale: float = 1.0, unit: str = "") -> list[Cell]:
    """Return the cells of a column: in each the mean of some values, and their range if there are several.

    Args:
        values: those of each cell; a cell without values is shown as missing.
        scale: factor of the numbers that are shown, 100 for percent; exact values are not scaled.
        unit: text after each number.
    """
    decimals = decimals_of(scale * value for cell in values if cell for value in (*cell, fmean(cell)))
    if unit == PERCENT:
        decimals = min(decimals, 2)
    return [_cell(cell, scale, unit, decimals) if cell else MISSING for cell in values]


def _cell(values: Sequence[float], scale: float, unit: str, decimals: int) -> Cell:
    mean = shown(scale * fmean(values), decimals) + unit
    all_of_them = ", ".join(map(exact, values))
    if len(set(map(exact, values))) == 1:  # NaN is not equal to itself
        return Cell(mean, all_of_them, "n")
    least, most = (shown(scale * bound, decimals) for bound in (min(values), max(values)))
    content = joined([mean, element("small", f"{least} – {most}")])
    return Cell(content, f"mean of {all_of_them}", "n")
