"""The attention of a model's last layer for a sentence, as a picture with its n-grams in boxes."""

from __future__ import annotations

from ernie_gram.api import Model
from ernie_gram.inference.ngram_attention import Floats, TokenSpan, lexicon_spans, ngram_cutter
from ernie_gram.reporting.markup import Html, element
from reader.lexicon.lexicon_file import Lexicon

EXPLAINED = (
    "Attention in the last layer, the mean of its heads: each row is a token that attends, each column a token that is "
    "attended to; darker is more. N-grams are in boxes."
)
# Pixels of a cell, and of a letter of the labels.
CELL, LETTER = 15, 7.2
# Shades, from none to that of the largest weight.
LEVELS = 8


def attention_map(model: Model, text: str, lexicon: Lexicon | None, title: str) -> Html:
    """Return a figure with the attention for a text.

    Raises InputError if the text is too long for the model, or if the lexicon has another vocabulary.
    """
    attention = model.attention(text)
    weights: Floats = attention.weights[-1].mean(0)
    spans = lexicon_spans(model.texts, text, ngram_cutter(model.texts, lexicon)) if lexicon else []
    return picture(weights, attention.tokens, spans, title)


def picture(weights: Floats, tokens: list[str], spans: list[TokenSpan], title: str) -> Html:
    """Return a figure: one path for each shade, because a page has thousands of cells."""
    margin = round(LETTER * max(map(len, tokens))) + 8
    size = margin + CELL * len(tokens)
    shades: dict[int, str] = {}
    for query, row in enumerate((weights / weights.max() * LEVELS).round().astype(int).tolist()):
        for key, level in enumerate(row):
            cell = f"M{margin + CELL * key} {margin + CELL * query}h{CELL}v{CELL}h-{CELL}z"
            shades[level] = shades.get(level, "") + cell
    drawn = [
        element("path", d=path, class_="shade", opacity=f"{level / LEVELS:.3g}")
        for level, path in sorted(shades.items())
        if level
    ]
    for number, token in enumerate(tokens):
        baseline = margin + CELL * number + CELL / 2 + 4
        drawn.append(element("text", token, x=margin - 5, y=baseline, class_="end"))
        drawn.append(element("text", token, transform=f"translate({baseline},{margin - 5}) rotate(-90)"))
    for start, end in spans:
        first, width = margin + CELL * start, CELL * (end - start)
        drawn.append(element("rect", x=first, y=first, width=width, height=width, class_="box"))
    shown = {"viewBox": f"0 0 {size} {size}", "role": "img", "style": f"max-width: {1.2 * size:.0f}px"}
    svg = element("svg", *drawn, aria_label=f"{title}: attention", **shown)
    return element("figure", element("figcaption", title), svg)
