"""A figure of attention weights: the mean over the heads with the tokens on both axes, and every head.

Shape letters: A heads, n tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ernie_gram.inference.ngram_attention import Floats, TokenSpan
from ernie_gram.plot import use_fonts

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

# Inches: a token with its label, the smallest and largest side of the large panel, and margins for labels and scales.
TOKEN, SMALLEST, LARGEST = 0.21, 3.8, 30.0
LONGEST_LABEL = 16  # letters
COLORS, NGRAM_COLOR = "Blues", "#d1410c"


def attention_figure(weights: Floats, tokens: Sequence[str], spans: Sequence[TokenSpan], title: str) -> Figure:
    """Return a figure of one layer.

    The scale of the colours ends at the largest weight between two tokens that are not [CLS] or [SEP]. These two often
    get most of the attention, so that everything else would be pale.

    Args:
        weights: [A, n, n], of each key (column) for each query (row).
        tokens: of the text, with [CLS] and [SEP].
        spans: tokens to mark as an n-gram each.
    """
    use_fonts()
    from matplotlib import pyplot

    side = min(max(TOKEN * len(tokens), SMALLEST), LARGEST)
    rows = int(np.ceil(np.sqrt(len(weights))))
    columns = -(-len(weights) // rows)
    labels = [token if len(token) <= LONGEST_LABEL else f"{token[: LONGEST_LABEL - 1]}…" for token in tokens]
    margin = 0.085 * max(map(len, labels))
    small = side / rows
    widths = [side + margin + 1.1, columns * small + 1.0]
    figure = pyplot.figure(figsize=(sum(widths), side + margin + 1.0), layout="constrained")
    large, heads = figure.subfigures(1, 2, width_ratios=widths)
    axes = large.subplots()
    image = _draw(axes, weights.mean(0), spans, line=1.6)
    _label(axes, labels, spans, min(9.0, 0.8 * 72 * side / len(tokens)))
    axes.set(xlabel="key (attended to)", ylabel="query")
    _scale(large, image, axes, weights.mean(0))
    figure.suptitle(title, fontsize=10)
    panels = heads.subplots(rows, columns, squeeze=False).ravel()
    limit = _largest(weights)
    for number, panel in enumerate(panels):
        if number >= len(weights):
            panel.axis("off")
            continue
        image = _draw(panel, weights[number], spans, line=0.8, limit=limit)
        panel.set(xticks=[], yticks=[])
        panel.set_title(f"head {number}", fontsize=8, pad=3)
    _scale(heads, image, list(panels), weights)
    return figure


def _largest(weights: Floats) -> float:
    """Return the largest weight between two tokens that are not [CLS] or [SEP]."""
    return float(weights[..., 1:-1, 1:-1].max())


def _draw(
    axes: Axes, weights: Floats, spans: Sequence[TokenSpan], line: float, limit: float | None = None
) -> AxesImage:
    """Draw the weights of a panel, with a box around the weights inside each n-gram."""
    from matplotlib.patches import Rectangle

    image = axes.imshow(weights, cmap=COLORS, vmin=0, vmax=limit or _largest(weights), interpolation="nearest")
    for start, end in spans:
        size = end - start
        axes.add_patch(
            Rectangle((start - 0.5, start - 0.5), size, size, fill=False, edgecolor=NGRAM_COLOR, linewidth=line)
        )
    return image


def _label(axes: Axes, labels: Sequence[str], spans: Sequence[TokenSpan], size: float) -> None:
    """Write the tokens on both axes; those of n-grams are coloured."""
    in_ngram = {slot for start, end in spans for slot in range(start, end)}
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    axes.set_xticks(range(len(labels)), labels, fontsize=size)
    axes.set_yticks(range(len(labels)), labels, fontsize=size)
    axes.tick_params(length=2, pad=2)
    for label in axes.get_xticklabels():
        # A Chinese character stands upright.
        label.set_rotation(0 if len(label.get_text()) == 1 else 90)
    for axis in (axes.xaxis, axes.yaxis):
        for slot, label in enumerate(axis.get_ticklabels()):
            # Dollar signs would begin a formula.
            label.set_parse_math(False)
            if slot in in_ngram:
                label.set_color(NGRAM_COLOR)


def _scale(figure: Figure, image: AxesImage, panels: Axes | list[Axes], weights: Floats) -> None:
    """Draw the scale of colours, with an arrow if larger weights occur."""
    extend = "max" if weights.max() > image.get_clim()[1] else "neither"
    scale = figure.colorbar(image, ax=panels, shrink=0.6, aspect=30, pad=0.02, extend=extend)
    scale.ax.tick_params(labelsize=8)
    scale.set_label("attention weight", fontsize=8)
