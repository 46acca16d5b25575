"""Curves against steps, drawn by Matplotlib as SVG for a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from ernie_gram.plot import draw_curve, new_figure, set_step_axis, svg_text
from ernie_gram.reporting.runs import LARGEST, ReportedRun

# Inches; a page shows them at about 80 pixels an inch.
SIZE = (5.5, 3.3)
# Points of a curve that are kept: more would not be seen, and would make the page heavy.
MAX_POINTS = 150
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
    figure, [axes] = new_figure(1, SIZE)
    for number, run in enumerate(runs):
        best = run.chosen if kind == "eval" else None
        points = thinned([(step, scale * y) for step, y in run.values(kind, name) if drawable(y)], best)
        draw_curve(axes, points, number, run.name, gid=f"c{number}")
        if chosen := [point for point in points if point[0] == best]:
            draw_curve(axes, chosen, number, "chosen", gid=f"c{number}", markersize=11, markerfacecolor="none")
    lines = [
        axes.axhline(scale * value, color="gray", ls=REFERENCE_DASHES[i % 3], label=f"{label} {scale * value:,.4g}")
        for i, (label, value) in enumerate((references or {}).items())
        if drawable(value)
    ]
    if lines:
        axes.legend(handles=lines, fontsize="small")
    axes.grid(alpha=0.3)
    set_step_axis(axes, title, "", "log" if is_log else "linear")
    # Matplotlib escapes the texts.
    return Markup(svg_text(figure))
