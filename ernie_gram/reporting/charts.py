"""Line charts as inline SVG: curves against steps, on a linear or a logarithmic axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from ernie_gram.plot import MAX_MARKED
from ernie_gram.reporting.markup import Html, element, joined
from ernie_gram.reporting.numbers import decimals_of, exact, shown

WIDTH, HEIGHT = 440, 270
LEFT, RIGHT, TOP, BOTTOM = 58, 12, 12, 34
# Points of a curve that are kept: more would not be seen, and would make the page heavy.
MAX_POINTS = 150
MAX_TICKS = 7
LINE_HEIGHT = 12
# Room below and above the curves, as a share of the range of their values.
MARGIN = 0.04

Point = tuple[float, float]


class Series(NamedTuple):
    """A curve.

    Attributes:
        label: for the reader.
        style: classes of CSS, which give its colour.
        points: step and value.
        best: the step of a point to be marked as the best one, or None.
    """

    label: str
    style: str
    points: Sequence[Point]
    best: float | None = None


class Reference(NamedTuple):
    """A horizontal line, for what does not change with the step."""

    label: str
    value: float


def thinned(points: Sequence[Point], best: float | None = None, limit: int = MAX_POINTS) -> list[Point]:
    """Return at most `limit` of some points, evenly spread, the first and the last among them, and that of `best`."""
    if len(points) <= limit:
        return list(points)
    kept = {round(i * (len(points) - 1) / (limit - 1)) for i in range(limit)}
    return [point for i, point in enumerate(points) if i in kept or point[0] == best]


def linear_ticks(low: float, high: float, whole: bool = False) -> list[float]:
    """Return round numbers between two bounds, at most MAX_TICKS; only whole numbers if `whole`."""
    if high <= low:
        return [low]
    for exponent in range(math.floor(math.log10(high - low)) - 2, math.ceil(math.log10(high - low)) + 1):
        for factor in (1, 2, 5):
            step = factor * 10.0**exponent
            first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
            if last - first < MAX_TICKS and not (whole and step < 1):
                return [round(i * step, 12) for i in range(first, last + 1)]
    return [low, high]


def log_ticks(low: float, high: float) -> list[float]:
    """Return round numbers between two positive bounds for a logarithmic axis, at most MAX_TICKS."""
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for factors in ((1, 2, 3, 5, 7), (1, 2, 5), (1, 3), (1,)):
        ticks = [factor * 10.0**exponent for exponent in exponents for factor in factors]
        inside = [tick for tick in ticks if low * 0.999 <= tick <= high * 1.001]
        if len(inside) <= MAX_TICKS:
            return inside if len(inside) > 1 else linear_ticks(low, high)
    step = -(-len(exponents) // MAX_TICKS)
    return [10.0**exponent for exponent in exponents[::step] if low <= 10.0**exponent <= high]


def _widened(low: float, high: float, is_log: bool) -> tuple[float, float]:
    """Return bounds a little outside of others, but not below 0."""
    if is_log:
        factor = (high / low) ** MARGIN
        return low / factor, high * factor
    margin = MARGIN * (high - low)
    return low - margin if low - margin > 0 or low < 0 else min(low, 0.0), high + margin


class _Axis:
    """Maps values to pixels."""

    def __init__(self, values: Sequence[float], first: float, last: float, is_log: bool) -> None:
        low, high = min(values), max(values)
        if low == high:
            low, high = (low / 1.5, high * 1.5) if is_log else (low - (abs(low) or 1) / 2, high + (abs(high) or 1) / 2)
        elif not first < last:
            # Curves must not touch the frame; but the axis of steps, where first < last, ends at the last step.
            low, high = _widened(low, high, is_log)
        self._convert = math.log if is_log else float
        self._first, self._last = first, last
        self._low, self._high = self._convert(low), self._convert(high)
        self.ticks = log_ticks(low, high) if is_log else linear_ticks(low, high, whole=first < last)

    def __call__(self, value: float) -> float:
        share = (self._convert(value) - self._low) / (self._high - self._low)
        return self._first + share * (self._last - self._first)


def chart(
    title: str, series: Sequence[Series], references: Sequence[Reference] = (), is_log: bool = False, scale: float = 1.0
) -> Html:
    """Return a figure with a chart and its title; an empty text without points.

    Args:
        references: horizontal lines.
        is_log: whether the axis of values is logarithmic; then only positive values are drawn.
        scale: factor of the values that are shown, 100 for percent.
    """

    def drawable(value: float) -> bool:
        return math.isfinite(value) and (value > 0 or not is_log)

    curves = [
        each._replace(points=thinned([(step, scale * y) for step, y in each.points if drawable(y)], each.best))
        for each in series
    ]
    curves = [each for each in curves if each.points]
    lines = [Reference(each.label, scale * each.value) for each in references if drawable(each.value)]
    if not curves:
        return Html("")
    steps = [step for each in curves for step, _ in each.points]
    values = [value for each in curves for _, value in each.points] + [line.value for line in lines]
    x = _Axis([0, *steps], LEFT, WIDTH - RIGHT, False)
    y = _Axis(values, HEIGHT - BOTTOM, TOP, is_log)
    drawn = [*_grid(x, y), *_references(lines, y), *(_curve(each, x, y) for each in curves)]
    ends = "; ".join(f"{each.label}: {each.points[-1][1]:.4g} at step {each.points[-1][0]:,}" for each in curves)
    picture = element(
        "svg", *drawn, class_="chart", viewBox=f"0 0 {WIDTH} {HEIGHT}", role="img", aria_label=f"{title}. {ends}"
    )
    return element("figure", element("figcaption", title), picture)


def _text(content: str, x: float, y: float, style: str) -> Html:
    return element("text", content, x=f"{x:.1f}", y=f"{y:.1f}", class_=style)


def _grid(x: _Axis, y: _Axis) -> list[Html]:
    """Return the lines and labels of both axes."""
    decimals = 0
    while any(abs(tick * 10**decimals - round(tick * 10**decimals)) > 1e-6 for tick in y.ticks) and decimals < 9:
        decimals += 1
    drawn = [
        element("path", class_="grid", d="".join(f"M{LEFT} {y(tick):.1f}H{WIDTH - RIGHT}" for tick in y.ticks)),
        *(_text(shown(tick, decimals), LEFT - 6, y(tick) + 4, "end") for tick in y.ticks),
        element("path", class_="axis", d=f"M{LEFT} {HEIGHT - BOTTOM}H{WIDTH - RIGHT}"),
    ]
    for tick in x.ticks:
        # The labels at both ends stay inside of the picture.
        place = "end" if x(tick) > WIDTH - RIGHT - 20 else "middle"
        drawn.append(_text(f"{tick:,.0f}", x(tick), HEIGHT - BOTTOM + 16, place))
    return [*drawn, _text("step", LEFT + (WIDTH - LEFT - RIGHT) / 2, HEIGHT - 3, "middle soft")]


def _references(lines: Sequence[Reference], y: _Axis) -> list[Html]:
    """Return dotted lines with their labels above them; labels that would overlap move up."""
    drawn, above = [], float("inf")
    for line in sorted(lines, key=lambda line: line.value):
        place = y(line.value)
        above = min(place - 3, above - LINE_HEIGHT)
        label = f"{line.label} {shown(line.value, 0 if line.value >= 100 else decimals_of([line.value]))}"
        drawn.append(element("path", class_="reference", d=f"M{LEFT} {place:.1f}H{WIDTH - RIGHT}"))
        drawn.append(_text(label, WIDTH - RIGHT, max(above, TOP), "end soft halo"))
    return drawn


def _curve(series: Series, x: _Axis, y: _Axis) -> Html:
    """Return the line of a curve, with markers that show their values if there are few."""
    places = [(x(step), y(value)) for step, value in series.points]
    line = "M" + "L".join(f"{across:.1f} {down:.1f}" for across, down in places)
    values = " ".join(f"{exact(step)}:{value:.6g}" for step, value in series.points)
    drawn = [element("path", class_="line", d=line, data_p=values, data_l=series.label)]
    for (step, value), (across, down) in zip(series.points, places, strict=True):
        is_best = step == series.best
        if len(places) <= MAX_MARKED or is_best:
            what = element("title", f"{series.label}: {value:.6g} at step {exact(step)}{' (best)' if is_best else ''}")
            radius, style = (5, "best") if is_best else (2.2, "")
            drawn.append(element("circle", what, cx=f"{across:.1f}", cy=f"{down:.1f}", r=radius, class_=style))
    return element("g", *drawn, class_=series.style)


def legend(labels: Sequence[str], first: int = 0) -> Html:
    """Return a legend for the classes c0, c1, ... of curves; each can be hidden (see style.toggles)."""
    return element(
        "p",
        joined(
            element(
                "label",
                element("input", type="checkbox", id=f"t{number}", checked=True),
                element("i", class_=f"c{number}"),
                label,
            )
            for number, label in enumerate(labels, first)
        ),
        class_="legend",
    )
