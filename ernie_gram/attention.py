"""Show how the tokens of a text attend to each other in a layer of a model, and whether n-grams attend to themselves.

    ernie-gram attention output/base --text "Barack Obama was born in Honolulu" \\
        --entities "Barack Obama" --plot attention.png
    ernie-gram attention output/base --text "the end of the world" --lexicon lexicon.tsv --json attention.json
    ernie-gram attention output/base --input texts.txt --lexicon lexicon.tsv

The table compares, for each head, the mean attention between two tokens of the same n-gram (inside) with the mean
attention at the same distances between tokens of the same text that are in no n-gram (expected).
"""

from __future__ import annotations

from reader.commands import run_command

if __name__ == "__main__":
    run_command("ernie_gram.attention")

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from ernie_gram.api import Model, TextAttention
from ernie_gram.config.checks import require
from ernie_gram.distributed.device import check_device, use_device
from ernie_gram.distributed.loading import load_paddle
from ernie_gram.inference.attention_figure import attention_figure
from ernie_gram.inference.ngram_attention import (
    Floats,
    InsideAttention,
    TokenSpan,
    inside_attention,
    lexicon_spans,
    ngram_cutter,
    phrase_spans,
    pooled,
)
from ernie_gram.inference.requests import answering, decoded, read_lines
from ernie_gram.plot import image_format, write_figure
from reader.errors import InputError, OneLineParser, counted, located, print_note
from reader.lexicon.lexicon_file import Lexicon
from reader.system.atomic_files import write_atomically
from reader.system.output_files import add_output_files, check_output_path, claimed_file
from reader.system.progress import progress

# Weights in JSON have this many digits after the point.
DIGITS = 6


def parse_arguments() -> argparse.Namespace:
    """Parse the command line; raises InputError."""
    parser = OneLineParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, metavar="MODEL", help="a run, checkpoint or model folder of any format")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--text", help="one text")
    source.add_argument(
        "--input",
        type=Path,
        metavar="FILE",
        help="file with one text per line; prints one table for all of them; long texts are truncated",
    )
    marked = parser.add_mutually_exclusive_group()
    marked.add_argument(
        "--entities", nargs="+", default=[], metavar="WORDS", help="words of the text to mark as n-grams"
    )
    marked.add_argument("--lexicon", type=Path, metavar="FILE", help="mark the n-grams of this lexicon")
    parser.add_argument("--layer", type=int, default=-1, metavar="N", help="0 is the first, -1 the last (%(default)s)")
    add_output_files(
        parser,
        {
            "--plot": "draw the weights: .png, .pdf or .svg",
            "--json": "write tokens, n-grams and weights as JSON",
        },
    )
    arguments = parser.parse_args()
    if arguments.input:
        require(arguments.lexicon is not None, "--lexicon", "is needed with --input")
        require(arguments.plot is None, "--plot", "is for --text; leave it out")
    if arguments.plot:
        image_format(arguments.plot)
    for option in ("plot", "json"):
        if path := getattr(arguments, option):
            check_output_path(
                f"--{option}", path, arguments.overwrite, filter(None, [arguments.lexicon, arguments.input])
            )
    require(arguments.plot is None or arguments.plot != arguments.json, "--json", "must not be the file of --plot")
    return arguments


def spans_of(arguments: argparse.Namespace, model: Model) -> list[TokenSpan]:
    """Return the n-grams to mark; raises InputError that names the option."""
    texts, text = model.texts, arguments.text
    with located("--text"):
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise InputError("is not UTF-8") from error
        texts.encode((text,))
    if arguments.lexicon:
        with located("--lexicon"):
            return lexicon_spans(texts, text, ngram_cutter(texts, Lexicon.load(arguments.lexicon)))
    with located("--entities"):
        return phrase_spans(texts, text, arguments.entities)


def layer_weights(attention: TextAttention, layer: int) -> Floats:
    """Return the weights of a layer, float32 [A, n, n]; raises InputError if there is no such layer."""
    layers = len(attention.weights)
    if not -layers <= layer < layers:
        raise InputError(f"--layer: {layer} is not between {-layers} and {layers - 1}: the model has {layers} layers")
    weights: Floats = attention.weights[layer]
    return weights


def span_texts(attention: TextAttention, text: str, spans: list[TokenSpan]) -> list[str]:
    """Return the text of each n-gram."""
    texts = []
    for start, end in spans:
        first, last = attention.offsets[start], attention.offsets[end - 1]
        assert first is not None
        assert last is not None
        texts.append(text[first[0] : last[1]])
    return texts


def table(found: InsideAttention) -> str:
    """Return the attention inside n-grams, for the mean of the heads and for each head."""
    if not found.pairs:
        return "no n-gram of several tokens whose distances also occur between two tokens outside of n-grams"
    lines = [f"{'':16}{'inside':>8}{'expected':>10}{'ratio':>8}"]
    rows = [("mean of heads", found.inside.mean(), found.expected.mean())]
    rows += [(f"head {head}", *values) for head, values in enumerate(zip(found.inside, found.expected, strict=True))]
    lines += [f"{name:16}{inside:8.4f}{expected:10.4f}{inside / expected:8.2f}" for name, inside, expected in rows]
    left_out = f"; {found.left_out:,} at distances that do not occur outside" if found.left_out else ""
    return "\n".join([*lines, f"({counted(found.pairs, 'pair')} of tokens{left_out})"])


def numbers(found: InsideAttention) -> dict[str, Any]:
    """Return the attention inside n-grams as an object for JSON."""
    counts = {"pairs": found.pairs, "left_out": found.left_out}
    return counts | ({"inside": rounded(found.inside), "expected": rounded(found.expected)} if found.pairs else {})


def rounded(values: Floats) -> Any:
    """Return numbers as lists for JSON."""
    return np.round(values.astype(np.float64), DIGITS).tolist()


def over_texts(arguments: argparse.Namespace, model: Model) -> dict[str, Any]:
    """Print the table over all lines of a file; return it as an object for JSON; raises InputError with the line."""
    with located("--lexicon"):
        cutter = ngram_cutter(model.texts, Lexicon.load(arguments.lexicon))
    found, layers = list[InsideAttention](), 0
    with answering([arguments.input]) as phase:
        for name, line in read_lines([arguments.input], phase.advance):
            if not line.strip():
                continue  # between documents
            with located(name):
                text = decoded(line)
                spans = lexicon_spans(model.texts, text, cutter)
                attention = model.attention(text, truncate=True)
            layers = len(attention.weights)
            found.append(inside_attention(layer_weights(attention, arguments.layer), spans))
    if not found:
        raise InputError(f"{arguments.input}: has no text")
    total = pooled(found)
    print(counted(len(found), "text"))
    print(table(total))
    return {
        "texts": len(found),
        "layer": arguments.layer % layers,
        "layers": layers,
        "inside_attention": numbers(total),
    }


def of_text(arguments: argparse.Namespace, model: Model, spans: list[TokenSpan]) -> dict[str, Any]:
    """Print the table of one text and draw its attention; return it as an object for JSON (see docs/predicting.md)."""
    attention = model.attention(arguments.text)
    layer, layers = arguments.layer % len(attention.weights), len(attention.weights)
    weights, texts = layer_weights(attention, arguments.layer), span_texts(attention, arguments.text, spans)
    inside = inside_attention(weights, spans)
    print(f"{counted(len(attention.tokens), 'token')}; n-grams: {', '.join(texts) or 'none'}")
    print(table(inside))
    if not (arguments.entities or arguments.lexicon):
        print_note("no n-grams to compare; mark some with --entities or --lexicon")
    if arguments.plot:
        with claimed_file("--plot", arguments.plot, arguments.overwrite), progress("drawing"):
            name = "/".join(model.folder.resolve().parts[-2:])
            title = f"{name}: attention in layer {layer} (of 0 to {layers - 1}); mean of the heads, and each head"
            write_figure(attention_figure(weights, attention.tokens, spans, title), arguments.plot)
        print(f"written  {arguments.plot}")
    return {
        "text": arguments.text,
        "layer": layer,
        "layers": layers,
        "tokens": attention.tokens,
        "offsets": attention.offsets,
        "ngrams": [{"text": each, "start": start, "end": end} for each, (start, end) in zip(texts, spans, strict=True)],
        "inside_attention": numbers(inside),
        "weights": rounded(weights),
    }


def main() -> None:
    """Run the command line."""
    arguments = parse_arguments()
    model = Model.load(arguments.model)
    for note in model.notes:
        print_note(f"{model.folder}: {note}")
    spans = [] if arguments.input else spans_of(arguments, model)
    load_paddle()
    use_device(check_device("auto"))
    with progress("building the network"):
        model.prepare()
    content = over_texts(arguments, model) if arguments.input else of_text(arguments, model, spans)
    if arguments.json:
        with claimed_file("--json", arguments.json, arguments.overwrite):
            content = {"model": str(model.folder), **content}
            write_atomically(arguments.json, json.dumps(content, ensure_ascii=False) + "\n")
        print(f"written  {arguments.json}")
