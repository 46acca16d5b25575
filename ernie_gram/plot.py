"""Plot the curves of one or more runs: `python -m ernie_gram.plot OUTPUT [OUTPUT ...] --to FILE.png`."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ernie_gram.run.run_log import Record, read_log
from reader.errors import InputError, OneLineParser, one_line_errors
from reader.system.atomic_files import atomic_file, check_parent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = ("png", "pdf", "svg")


def curve(records: list[Record], kind: str, value: str) -> tuple[list[int], list[float]]:
    """Return the steps and values of one quantity."""
    chosen = [record for record in records if record["kind"] == kind and value in record]
    return [record["step"] for record in chosen], [record[value] for record in chosen]


def running_mean(steps: list[int], values: list[float]) -> tuple[list[int], list[float]]:
    """Return running means over a tenth of the values, each at its last step, because single batches are noisy."""
    width = max(1, len(values) // 10)
    means = [sum(values[i : i + width]) / width for i in range(len(values) - width + 1)]
    return steps[width - 1 :], means


def _load_matplotlib() -> None:
    """Load Matplotlib for drawing into files. If its cache folder cannot be written, print one line instead of two."""
    variable, logger = "MPLCONFIGDIR", logging.getLogger("matplotlib")
    before, level = os.environ.get(variable), logger.level
    logger.setLevel(logging.ERROR)
    import matplotlib

    matplotlib.get_configdir()
    logger.setLevel(level)
    # Matplotlib sets the variable when it has to use a temporary folder.
    if os.environ.get(variable) != before:
        print("warning: Matplotlib's cache folder cannot be written; it uses a temporary one", file=sys.stderr)
    matplotlib.use("Agg")


def new_figure(panels: int) -> tuple[Figure, list[Axes]]:
    """Return an empty figure with some panels side by side."""
    _load_matplotlib()
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, panels, figsize=(4 + 3.5 * panels, 4), layout="constrained", squeeze=False)
    return figure, list(axes[0])


def image_format(target: Path) -> str:
    """Return the format that the ending of a file's name stands for; raises InputError for other endings."""
    name = target.suffix.lower().removeprefix(".")
    if name not in FORMATS:
        raise InputError(f"{target}: the name of a plot must end in {', '.join(f'.{known}' for known in FORMATS)}")
    return name


def save_figure(figure: Figure, panels: list[Axes], target: Path) -> None:
    """Add grid and legends to a figure, and write it in the format of the ending of `target`."""
    from matplotlib import pyplot

    for axes in panels:
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
    with atomic_file(target) as partial:
        figure.savefig(partial, format=image_format(target), dpi=120)
    pyplot.close(figure)


def plot_runs(outputs: list[Path], target: Path) -> None:
    """Plot training loss and held-out perplexity against steps, and write the plot, see `image_format`.

    Raises InputError for a folder without records.
    """
    image_format(target)
    check_parent(target)
    figure, (left, right) = new_figure(2)
    for output in outputs:
        records = read_log(output)
        if not records:
            raise InputError(f"{output}: no log.jsonl with records: not the folder of a run")
        steps, losses = curve(records, "train", "loss")
        (line,) = left.plot(*running_mean(steps, losses), label=output.name)
        left.plot(steps, losses, color=line.get_color(), alpha=0.25, linewidth=1)
        right.plot(*curve(records, "eval", "perplexity"), "o-", color=line.get_color(), label=f"{output.name}: units")
        right.plot(
            *curve(records, "eval", "ngram_perplexity"), "s--", color=line.get_color(), label=f"{output.name}: n-grams"
        )
        steps, baseline = curve(records, "eval", "frequency_perplexity")
        right.plot(steps, baseline, ":", color=line.get_color(), label=f"{output.name}: unit frequencies")
    left.set(title="Training loss", xlabel="step", ylabel="loss")
    right.set(title="Held-out perplexity", xlabel="step", ylabel="perplexity", yscale="log")
    save_figure(figure, [left, right], target)


def main() -> None:
    """Run the command line."""
    parser = OneLineParser(prog="python -m ernie_gram.plot", description=__doc__)
    parser.add_argument("outputs", nargs="+", type=Path, metavar="OUTPUT", help="a run's folder (paths.output)")
    parser.add_argument("--to", type=Path, required=True, metavar="FILE", help="file to write: .png, .pdf or .svg")
    arguments = parser.parse_args()
    plot_runs(arguments.outputs, arguments.to)


if __name__ == "__main__":
    one_line_errors(main)
