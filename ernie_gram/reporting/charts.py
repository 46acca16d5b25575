"""Curves against steps, drawn by Matplotlib as SVG for a page."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from io import StringIO
from typing import Any

from markupsafe import Markup
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, StrMethodFormatter

from ernie_gram.reporting.runs import LARGEST, ReportedRun

# Inches; a page shows them at about 80 pixels an inch.
SIZE = (5.5, 3.3)
# Points of a curve that are kept: more would not be seen, and would make the page heavy.
MAX_POINTS = 150
# A curve with at most this many points has a marker at each.
MAX_MARKED = 40
# Letters are drawn by the reader's fonts. Names of runs may have dollar signs.
STYLE = {"svg.fonttype": "none", "text.parse_math": False}
REFERENCE_DASHES = ("dotted", "dashdot", "dashed")


def thinned(points: Sequence[tuple[int, float]], best: object) -> list[tuple[int, float]]:
    """Return at most MAX_POINTS points, evenly spread, the first and the last among them, and that of a step."""
    kept = {round(i * (len(points) - 1) / (MAX_POINTS - 1)) for i in range(MAX_POINTS)}
    return [point for i, point in enumerate(points) if i in kept or point[0] == best]


def chart(
    runs: Sequence[ReportedRun],
    title: str,
    name: str,
    references: Mapping[str, float] | None = None,
    kind: str = "eval",
    is_log: bool = False,
    scale: float = 1.0,
) -> Markup:
    """Return a chart with a curve for each run that has a quantity, as SVG; an empty text without points.

    Args:
        references: names and values of horizontal lines, for what does not change with the step.
        kind: of the records; among evaluations, the one that a fine-tuning has chosen is marked.
        is_log: whether the axis of values is logarithmic; then only positive values are drawn.
        scale: factor of the values that are shown, 100 for percent.
    """

    def drawable(value: float) -> bool:
        return abs(value) < LARGEST and (value > 0 or not is_log)

    if not any(drawable(value) for run in runs for _, value in run.values(kind, name)):
        return Markup()
    with rc_context(STYLE):
        figure = Figure(SIZE, layout="constrained")
        axes = figure.subplots()
        for number, run in enumerate(runs):
            best = run.chosen if kind == "eval" else None
            style: dict[str, Any] = {"color": f"C{number % 10}", "gid": f"c{number}"}
            points = thinned([(step, scale * y) for step, y in run.values(kind, name) if drawable(y)], best)
            axes.plot(*_columns(points), label=run.name, marker="o" if len(points) <= MAX_MARKED else "", **style)
            if chosen := [point for point in points if point[0] == best]:
                axes.plot(*_columns(chosen), "o", label="chosen", markersize=11, markerfacecolor="none", **style)
        lines = [
            axes.axhline(scale * value, color="gray", ls=REFERENCE_DASHES[i % 3], label=f"{label} {scale * value:,.4g}")
            for i, (label, value) in enumerate((references or {}).items())
            if drawable(value)
        ]
        if lines:
            # Inside the axes it would often hide a curve or one of these lines.
            figure.legend(handles=lines, loc="outside lower center", ncols=2, frameon=False)
        axes.grid(alpha=0.3)
        _set_axes(axes, title, is_log)
        # Matplotlib escapes the texts.
        return Markup(svg_text(figure))


def _columns(points: Sequence[tuple[int, float]]) -> tuple[list[int], list[float]]:
    return [step for step, _ in points], [value for _, value in points]


def _set_axes(axes: Axes, title: str, is_log: bool) -> None:
    """Set the title of a chart and its axes: whole steps, and a quantity."""
    axes.set(title=title, xlabel="step", yscale="log" if is_log else "linear")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1, nbins=7, steps=(1, 2, 5, 10)))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    if is_log:
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.6g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())


def svg_text(figure: Figure) -> str:
    """Return a figure as an SVG element for a page."""
    written = StringIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of letters that no font here has
        figure.savefig(written, format="svg", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    return written.getvalue()[written.getvalue().index("<svg") :]
