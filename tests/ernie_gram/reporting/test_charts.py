"""Charts: ticks, what of a curve is drawn, and where."""

from __future__ import annotations

import itertools
import math
import re

import pytest

from ernie_gram.reporting.charts import (
    BOTTOM,
    HEIGHT,
    LEFT,
    MAX_TICKS,
    RIGHT,
    TOP,
    WIDTH,
    Reference,
    Series,
    chart,
    linear_ticks,
    log_ticks,
    thinned,
)


@pytest.mark.parametrize(
    ("low", "high"), [(0, 6000), (0, 1), (4.9, 10.3), (-3, 7), (0.00016, 0.001), (1e9, 3e9), (10.3, 135.7)]
)
def test_linear_ticks_are_round_inside_and_neither_few_nor_many(low: float, high: float) -> None:
    ticks = linear_ticks(low, high)
    assert 3 <= len(ticks) <= MAX_TICKS
    assert all(low <= tick <= high for tick in ticks)
    steps = {f"{after - before:.6g}" for before, after in itertools.pairwise(ticks)}
    assert len(steps) == 1
    assert next(iter(steps)).strip("0.e+-")[:1] in "125"


@pytest.mark.parametrize(("last", "labels"), [(0, ["0"]), (1, ["0", "1"]), (2, ["0", "1", "2"])])
def test_the_labels_of_few_steps_are_whole_and_different(last: int, labels: list[str]) -> None:
    drawn = chart("title", [Series("run", "c0", [(step, 5.0) for step in range(last + 1)])])
    assert re.findall(rf'y="{HEIGHT - BOTTOM + 16}.0"[^>]*>([^<]+)<', drawn) == labels


@pytest.mark.parametrize(("low", "high"), [(164, 1740), (1000, 147_200), (61, 770), (1, 1e30), (99, 101)])
def test_log_ticks_are_inside_and_neither_few_nor_many(low: float, high: float) -> None:
    ticks = log_ticks(low, high)
    assert 2 <= len(ticks) <= MAX_TICKS
    assert all(low * 0.99 <= tick <= high * 1.01 for tick in ticks)


def test_a_thinned_curve_keeps_its_ends() -> None:
    points = [(step, float(step)) for step in range(1000)]
    kept = thinned(points, limit=7)
    assert (len(kept), kept[0], kept[-1]) == (7, points[0], points[-1])
    assert thinned(points, limit=1000) == points


@pytest.mark.parametrize("best", [0, 20, 399])
def test_the_chosen_point_of_a_long_curve_stays_marked(best: int) -> None:
    points = [(step, float(step)) for step in range(400)]
    drawn = chart("title", [Series("run", "c0", points, best)])
    assert re.findall(r"<title>([^<]*)</title>", drawn) == [f"run: {best} at step {best} (best)"]


def test_equal_ratios_have_equal_distances_on_a_logarithmic_axis_and_nothing_leaves_the_frame() -> None:
    points = [(0, 1000.0), (1, 100.0), (2, 10.0), (3, math.nan), (4, 0.0), (5, math.inf)]
    references = [Reference("counts", 50.0), Reference("nothing", 0.0), Reference("unknown", math.nan)]
    drawn = chart("title", [Series("run", "c0", points)], references, is_log=True)
    line = re.search(r'class="line" d="M([^"]+)"', drawn)
    assert line is not None
    places = [tuple(map(float, point.split())) for point in line[1].split("L")]
    assert len(places) == 3
    (x, first), (_, second), (_, third) = places
    assert x == LEFT
    assert second - first == pytest.approx(third - second, abs=0.11)
    assert all(LEFT <= across <= WIDTH - RIGHT and TOP <= down <= HEIGHT - BOTTOM for across, down in places)
    assert 'data-p="0:1000 1:100 2:10"' in drawn
    assert "counts 50" in drawn
    assert "nothing" not in drawn
    assert "unknown" not in drawn


@pytest.mark.parametrize("is_log", [False, True])
@pytest.mark.parametrize("value", [5.0, 1e-300, 1e300])
def test_a_single_point_has_a_chart(value: float, is_log: bool) -> None:
    assert f'data-p="3:{value:.6g}"' in chart("title", [Series("run", "c0", [(3, value)])], is_log=is_log)


def test_without_points_there_is_no_chart() -> None:
    assert chart("title", [Series("run", "c0", [(1, math.nan)])], [Reference("counts", 50.0)]) == ""
