"""Numbers of a table: decimals, units, the mean and the range of several, and the exact values."""

from __future__ import annotations

import pytest
from ernie_gram.reporting.numbers import MISSING, PERCENT, column


@pytest.mark.parametrize(
    ("scale", "unit", "shown"), [(100.0, PERCENT, "%.2f"), (1.0, "", "%.4f"), (10.0, " s", "%.2f")]
)
def test_a_range_is_in_the_unit_of_its_mean_and_exact_values_are_not_scaled(
    scale: float, unit: str, shown: str
) -> None:
    several, one, none = column([[0.25, 0.75, 0.125], [0.5], []], scale, unit)
    mean, least, most, alone = (shown % (scale * value) for value in (0.375, 0.125, 0.75, 0.5))
    assert several.content == f"{mean}{unit}<small>{least} – {most}</small>"
    assert several.exact == "mean of 0.25, 0.75, 0.125"
    assert (one.content, one.exact) == (f"{alone}{unit}", "0.5")
    assert none == MISSING


def test_a_column_has_the_decimals_that_its_largest_number_needs() -> None:
    for largest, shown in ((1234.5, "1,234"), (123.45, "123.5"), (12.345, "12.35"), (0.12345, "0.1235")):
        assert [cell.content for cell in column([[largest], [float("nan")]])] == [shown, "nan"]
    assert [cell.content for cell in column([[2.0], [3.0]])] == ["2", "3"]
