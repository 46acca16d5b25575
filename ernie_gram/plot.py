"""Plot the curves of one or more runs: `ernie-gram plot OUTPUT [OUTPUT ...] --output FILE.png`."""

from __future__ import annotations

from reader.commands import run_command

if __name__ == "__main__":
    run_command("ernie_gram.plot")

import re
import warnings
from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ernie_gram.run.run_log import Record, read_log
from reader.errors import InputError, OneLineParser, print_warning
from reader.system.atomic_files import atomic_file
from reader.system.output_files import add_output_file, check_output_path

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = ("png", "pdf", "svg")
# Title of a plot -> the name and scale of its axis, and its curves: the key in log.jsonl, the style, and what is added
# to the name of the run. Without the first curve, the plot is left out.
EVALUATIONS = {
    "Held-out perplexity": (
        "perplexity",
        "log",
        (
            ("perplexity", "solid", ": units"),
            ("ngram_perplexity", "dashed", ": n-grams"),
            ("frequency_perplexity", "dotted", ": unit frequencies"),
        ),
    ),
    "Score": ("score", "linear", (("score", "solid", ""),)),
}
# Fonts for what DejaVu Sans, which comes with Matplotlib, lacks.
CHINESE_FONTS = re.compile("CJK|WenQuanYi|SimHei|SimSun|YaHei|PingFang|Heiti")
# A curve with at most this many points has a marker at each.
MAX_MARKED = 40
DOTS_PER_INCH = 120


def _curve(records: list[Record], kind: str, value: str) -> list[tuple[int, float]]:
    """Return the steps and values of one quantity."""
    return [(record["step"], record[value]) for record in records if record["kind"] == kind and value in record]


def new_figure(panels: int, size: tuple[float, float] | None = None) -> tuple[Figure, list[Axes]]:
    """Return an empty figure with some panels side by side; its size is in inches."""
    use_fonts()
    from matplotlib import pyplot

    size = size or (4 + 3.5 * panels, 4)
    figure, axes = pyplot.subplots(1, panels, figsize=size, layout="constrained", squeeze=False)
    return figure, list(axes[0])


def draw_curve(axes: Axes, points: Sequence[tuple[int, float]], number: int, label: str, **style: Any) -> None:
    """Draw a curve in the colour of a number, with a marker at each of its points if they are few."""
    axes.plot(*np.reshape(points, (-1, 2)).T, color=f"C{number % 10}", label=label, **style)
    axes.lines[-1].set_marker("o" if len(points) <= MAX_MARKED else "")


def use_fonts() -> None:
    """Let Matplotlib draw into files, and use the installed Chinese fonts beside its own."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import font_manager

    chinese = {font.name for font in font_manager.fontManager.ttflist if CHINESE_FONTS.search(font.name)}
    matplotlib.rcParams["font.family"] = ["DejaVu Sans", *sorted(chinese)]
    # Names of runs may have dollar signs.
    matplotlib.rcParams["text.parse_math"] = False


def image_format(target: Path) -> str:
    """Return the format that the ending of a file's name stands for; raises InputError for other endings."""
    name = target.suffix.lower().removeprefix(".")
    if name not in FORMATS:
        raise InputError(f"{target}: the name of a plot must end in {', '.join(f'.{known}' for known in FORMATS)}")
    return name


def set_step_axis(axes: Axes, title: str, label: str, scale: str) -> None:
    """Set the title of a panel and its axes: whole steps, and a quantity with its name and scale."""
    from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, StrMethodFormatter

    axes.set(title=title, xlabel="step", ylabel=label, yscale=scale)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    if scale == "log":
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.6g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())


def save_figure(figure: Figure, panels: list[Axes], target: Path) -> None:
    """Add grid and legends to a figure, write it in the format of the ending of `target`, and free its memory.

    Prints a warning if no installed font has some letters, which are then boxes.
    """
    from matplotlib import pyplot

    for axes in panels:
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
    with atomic_file(target) as partial, warnings.catch_warnings(record=True) as caught:
        # Matplotlib has a warning for each letter.
        warnings.simplefilter("always")
        figure.savefig(partial, format=image_format(target), dpi=DOTS_PER_INCH)
    pyplot.close(figure)
    if any(str(each.message).startswith("Glyph ") for each in caught):
        print_warning(f"{target}: no installed font has some letters; install one, such as Noto Sans CJK, and repeat")


def svg_text(figure: Figure) -> str:
    """Return a figure as an SVG element for a page, and free its memory. The fonts are those of the reader."""
    from matplotlib import pyplot, rc_context

    with rc_context({"svg.fonttype": "none"}), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        written = StringIO()
        figure.savefig(written, format="svg", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    pyplot.close(figure)
    return written.getvalue()[written.getvalue().index("<svg") :]


def plot_runs(outputs: list[Path], target: Path) -> None:
    """Plot training losses and evaluations against steps, and write the plot, see `image_format`.

    The evaluations of pre-training are held-out perplexities; those of fine-tuning are scores. Raises InputError for a
    folder without records.
    """
    image_format(target)
    outputs = list(dict.fromkeys(outputs))
    logs = [read_log(output) for output in outputs]
    for output, records in zip(outputs, logs, strict=True):
        if not records:
            raise InputError(f"{output}: no log.jsonl with records: not the folder of a run")
    shown = {
        title: panel
        for title, panel in EVALUATIONS.items()
        if any(_curve(records, "eval", panel[2][0][0]) for records in logs)
    }
    figure, panels = new_figure(1 + len(shown))
    losses, *evaluations = panels
    names = [output.absolute().name for output in outputs]
    for number, (output, name, records) in enumerate(zip(outputs, names, logs, strict=True)):
        label = name if names.count(name) == 1 else str(output)
        draw_curve(losses, _curve(records, "train", "loss"), number, label)
        for axes, (_, _, curves) in zip(evaluations, shown.values(), strict=True):
            for value, style, suffix in curves:
                draw_curve(axes, _curve(records, "eval", value), number, label + suffix, linestyle=style)
    set_step_axis(losses, "Training loss", "loss", "linear")
    for axes, (title, (what, scale, _)) in zip(evaluations, shown.items(), strict=True):
        set_step_axis(axes, title, what, scale)
    save_figure(figure, panels, target)


def main() -> None:
    """Run the command line."""
    parser = OneLineParser(description=__doc__)
    parser.add_argument("outputs", nargs="+", type=Path, metavar="OUTPUT", help="a run's folder (paths.output)")
    add_output_file(parser, "file to write: .png, .pdf or .svg", required=True)
    arguments = parser.parse_args()
    check_output_path("--output", arguments.output, arguments.overwrite)
    plot_runs(arguments.outputs, arguments.output)
    print(f"written  {arguments.output}")
