"""Show how the tokens of a text attend to each other, with boxes around entities (the paper's figures 6b to 6d, 7).

    python docs/studies/attention.py output/base --text "the European Commission said so" \
        --entities "European Commission" --output attention

OUTPUT.png gets the picture, of the mean of the heads and of every head; OUTPUT.json the tokens and the weights.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np

from ernie_gram import Model

Span = tuple[int, int]  # of tokens, half-open, counted with [CLS]


def phrase_spans(model: Model, text: str, phrases: Sequence[str]) -> list[Span]:
    """Return every occurrence of phrases as whole words of a text, in its order; ValueError if one does not occur."""
    texts = model.texts
    ids, spans = texts.encode((text,)).ids.tolist(), set[Span]()
    for phrase in phrases:
        wanted = texts.encode((phrase,)).ids[1:-1].tolist()
        size = len(wanted)
        found = {
            (start, start + size)
            for start in range(1, len(ids) - size)
            if ids[start : start + size] == wanted and begins_word(model, ids[start + size])
        }
        if not found or texts.vocabulary.unk in wanted:
            raise ValueError(f"{phrase!r} does not occur as whole words of the text")
        spans |= found
    return sorted(spans)


def begins_word(model: Model, token: int) -> bool:
    """Return whether a token does not continue the word of the token before it."""
    vocabulary = model.texts.vocabulary
    return token == vocabulary.sep or vocabulary.spelling(token)[1]


def draw(weights: np.ndarray, tokens: Sequence[str], spans: Sequence[Span], path: Path) -> None:
    """Draw the mean of the heads with the tokens on both axes, and every head, with boxes around the entities.

    The scale of the colours ends at the largest weight between two tokens that are not [CLS] or [SEP]. These two often
    get most of the attention, so that everything else would be pale.
    """
    mpl.use("Agg")
    from matplotlib import font_manager, pyplot
    from matplotlib.patches import Rectangle

    chinese = {font.name for font in font_manager.fontManager.ttflist if "CJK" in font.name}
    mpl.rcParams["font.family"] = ["DejaVu Sans", *sorted(chinese)]
    rows = int(np.ceil(np.sqrt(len(weights))))
    side = max(0.21 * len(tokens), 3.8)
    figure = pyplot.figure(figsize=(2.3 * side + 4, side + 2), layout="constrained")
    large, small = figure.subfigures(1, 2)
    panels = small.subplots(rows, -(-len(weights) // rows), squeeze=False).ravel()
    for panel in panels[len(weights) :]:
        panel.axis("off")
    first = large.subplots()
    for number, (axes, values) in enumerate(zip([first, *panels], [weights.mean(0), *weights], strict=False)):
        limit = (weights if number else values)[..., 1:-1, 1:-1].max()
        image = axes.imshow(values, cmap="Blues", vmin=0, vmax=limit, interpolation="nearest")
        for start, end in spans:
            box = Rectangle((start - 0.5, start - 0.5), end - start, end - start, fill=False, edgecolor="#d1410c")
            axes.add_patch(box)
        if number:
            axes.set(xticks=[], yticks=[])
            axes.set_title(f"head {number - 1}", fontsize=8, pad=3)
        else:
            axes.set_xticks(range(len(tokens)), tokens, fontsize=8, rotation=90, parse_math=False)
            axes.set_yticks(range(len(tokens)), tokens, fontsize=8, parse_math=False)
            axes.set(xlabel="key (attended to)", ylabel="query")
            large.colorbar(image, ax=axes, shrink=0.6, label="attention weight", extend="max")
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, metavar="MODEL", help="a run, checkpoint or model folder of any format")
    parser.add_argument("--text", required=True, help="a text")
    parser.add_argument("--entities", nargs="+", default=[], metavar="WORDS", help="words to mark")
    parser.add_argument("--layer", type=int, default=-1, metavar="N", help="0 is the first, -1 the last (%(default)s)")
    parser.add_argument("--output", type=Path, required=True, help="path of the files, without an ending")
    arguments = parser.parse_args()
    model = Model.load(arguments.model)
    spans = phrase_spans(model, arguments.text, arguments.entities)
    attention = model.attention(arguments.text)
    weights = attention.weights[arguments.layer]
    draw(weights, attention.tokens, spans, arguments.output.with_suffix(".png"))
    content = {"model": str(model.folder), "layer": arguments.layer, "text": arguments.text}
    content |= {"tokens": attention.tokens, "entities": spans, "weights": weights.tolist()}
    arguments.output.with_suffix(".json").write_text(json.dumps(content, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
