"""Show how the tokens of a text attend to each other, and whether n-grams attend to themselves (figures 6b to 6d, 7).

    python docs/studies/attention.py output/base --text "the European Commission said so" \
        --entities "European Commission" --output attention
    python docs/studies/attention.py output/base --input texts.txt --lexicon lexicon.tsv --output attention

The table compares, for each head, the mean attention between two tokens of the same n-gram (inside) with the mean
attention at the same distances between tokens of the same text that are in no n-gram (expected), because near tokens
attend to each other anyway. OUTPUT.json gets the numbers; for one text also the weights, and OUTPUT.png a picture.

Shape letters: A heads, n tokens of a text with [CLS] and [SEP].
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np

from ernie_gram import Model
from reader.corpus.units import UnitCutter
from reader.lexicon.own_list import given_lexicon

Span = tuple[int, int]  # of tokens, half-open, counted with [CLS]


class Inside(NamedTuple):
    """The attention inside n-grams, and at the same distances outside of n-grams.

    Attributes:
        inside: [A], the mean weight over all pairs of different tokens (query, key) of the same n-gram.
        expected: [A], the mean over the same pairs of the mean weight at the same distance, with its sign, between two
            tokens that are in no n-gram.
        pairs: their number; left_out: the number of pairs whose distances do not occur outside of n-grams.
    """

    inside: np.ndarray
    expected: np.ndarray
    pairs: int
    left_out: int


def inside_attention(weights: np.ndarray, spans: Sequence[Span]) -> Inside:
    """Return the attention inside n-grams from weights [..., n, n]; NaN without pairs. [CLS] and [SEP] are in none."""
    size = weights.shape[-1]
    inside, is_outside = np.zeros((size, size), bool), np.ones(size, bool)
    is_outside[[0, -1]] = False
    for start, end in spans:
        inside[start:end, start:end] = True
        is_outside[start:end] = False
    distances = np.arange(size) - np.arange(size)[:, None]
    inside &= distances != 0
    outside = np.outer(is_outside, is_outside)
    sums = np.zeros((2, *weights.shape[:-2]))
    pairs = left_out = 0
    for distance in np.unique(distances[inside]):
        at_distance = distances == distance
        ours, others = inside & at_distance, outside & at_distance
        count = int(ours.sum())
        if not others.any():
            left_out += count
            continue
        pairs += count
        sums += weights[..., ours].sum(-1), count * weights[..., others].mean(-1)
    means = sums / pairs if pairs else np.full_like(sums, np.nan)
    return Inside(means[0], means[1], pairs, left_out)


def pooled(found: Sequence[Inside]) -> Inside:
    """Return the means over the pairs of several texts; NaN if there are none."""
    counted, left_out = [each for each in found if each.pairs], sum(each.left_out for each in found)
    if not counted:
        return found[0]._replace(left_out=left_out)
    pairs = [each.pairs for each in counted]
    inside, expected = (np.average([each[i] for each in counted], axis=0, weights=pairs) for i in range(2))
    return Inside(inside, expected, sum(pairs), left_out)


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


def lexicon_spans(model: Model, text: str, cutter: UnitCutter) -> list[Span]:
    """Return the n-grams of a lexicon in the part of a text that fits, cut with the fewest segments as a corpus is."""
    encoded = model.texts.encode((text,), truncate=True)
    units = cutter.cut(text.encode()).units.astype(np.int64)
    lengths = np.ones(len(units), np.int64)
    is_ngram = units >= cutter.num_tokens
    lengths[is_ngram] = np.diff(cutter.ngram_offsets)[units[is_ngram] - cutter.num_tokens]
    ends = 1 + np.cumsum(lengths)
    if len(encoded) < model.texts.max_tokens and ends[-1] != len(encoded) - 1:
        raise ValueError("the lexicon splits the text into other tokens than the model; give the model's own lexicon")
    spans = [(int(end - length), int(end)) for end, length in zip(ends, lengths, strict=True) if length > 1]
    return [span for span in spans if span[1] < len(encoded)]


def draw(weights: np.ndarray, tokens: Sequence[str], spans: Sequence[Span], path: Path) -> None:
    """Draw the mean of the heads with the tokens on both axes, and every head, with boxes around the n-grams.

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


def table(found: Inside) -> str:
    """Return the attention inside n-grams, for the mean of the heads and for each head."""
    rows = [("mean of heads", found.inside.mean(), found.expected.mean())]
    rows += [(f"head {head}", *values) for head, values in enumerate(zip(found.inside, found.expected, strict=True))]
    lines = [f"{'':16}{'inside':>8}{'expected':>10}{'ratio':>8}"]
    lines += [f"{name:16}{inside:8.4f}{expected:10.4f}{inside / expected:8.2f}" for name, inside, expected in rows]
    return "\n".join([*lines, f"({found.pairs:,} pairs of tokens; {found.left_out:,} left out)"])


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, metavar="MODEL", help="a run, checkpoint or model folder of any format")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--text", help="one text")
    source.add_argument("--input", type=Path, metavar="FILE", help="one text per line; long texts are truncated")
    marked = parser.add_mutually_exclusive_group(required=True)
    marked.add_argument("--entities", nargs="+", default=[], metavar="WORDS", help="words to mark as n-grams")
    marked.add_argument("--lexicon", type=Path, metavar="FILE", help="mark the n-grams of this lexicon")
    parser.add_argument("--layer", type=int, default=-1, metavar="N", help="0 is the first, -1 the last (%(default)s)")
    parser.add_argument("--output", type=Path, required=True, help="path of the files, without an ending")
    arguments = parser.parse_args()
    model = Model.load(arguments.model)
    vocabulary = model.texts.vocabulary
    cutter = UnitCutter(vocabulary, given_lexicon(arguments.lexicon, vocabulary)) if arguments.lexicon else None
    texts = [arguments.text] if arguments.text else arguments.input.read_text(encoding="utf-8").splitlines()
    found, content = list[Inside](), dict[str, Any]()
    for text in filter(str.strip, texts):
        spans = lexicon_spans(model, text, cutter) if cutter else phrase_spans(model, text, arguments.entities)
        attention = model.attention(text, truncate=True)
        weights = attention.weights[arguments.layer]
        found.append(inside_attention(weights, spans))
        if arguments.text:
            content = {"text": text, "tokens": attention.tokens, "ngrams": spans, "weights": weights.tolist()}
            draw(weights, attention.tokens, spans, arguments.output.with_suffix(".png"))
    total = pooled(found)
    print(table(total))
    numbers = {"inside": total.inside.tolist(), "expected": total.expected.tolist()} if total.pairs else {}
    numbers |= {"pairs": total.pairs, "left_out": total.left_out}
    content |= {"model": str(model.folder), "layer": arguments.layer, "texts": len(found), "inside_attention": numbers}
    arguments.output.with_suffix(".json").write_text(json.dumps(content, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
