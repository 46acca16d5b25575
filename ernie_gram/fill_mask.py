"""Predict the units behind [MASK] with a pre-trained model; n-grams are among the candidates if it knows any.

    ernie-gram fill-mask output/run "the [MASK] proposed [MASK] a radical overhaul"

Without a text, lines are read from standard input. Invalid texts are named on standard error; the valid ones are
answered in order, and the exit status is then 2.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

from ernie_gram.api import Model
from ernie_gram.distributed.device import check_device, use_device
from ernie_gram.distributed.loading import load_paddle
from ernie_gram.inference.description import PRECISIONS, PROBABILITIES
from ernie_gram.inference.requests import Answers, decoded, read_lines
from ernie_gram.inference.texts import LINES_PER_BATCH, Guess
from reader.build_options import parse_positive
from reader.errors import OneLineParser, above_bars, first_line, print_note
from reader.tokenization.vocabulary import MASK


def show(text: str, guesses: list[list[Guess]], as_json: bool) -> None:
    """Print the predictions for one text."""
    if as_json:
        masks = [[asdict(guess) for guess in mask] for mask in guesses]
        print(json.dumps({"text": text, "masks": masks}, ensure_ascii=False), flush=True)
        return
    print(text)
    for number, mask in enumerate(guesses, start=1):
        print(f"  [MASK {number}]")
        for guess in mask:
            print(f"    {guess.probability:8.3%}  {guess.unit}")
    print(flush=True)


def main() -> None:
    """Run the command line."""
    parser = OneLineParser(description=first_line(__doc__))
    parser.add_argument(
        "model",
        type=Path,
        metavar="MODEL",
        help="a run's folder (its newest checkpoint), a step_N, or another model folder with prediction heads",
    )
    parser.add_argument("text", nargs="*", help=f"texts with {MASK} in place of whole words (default: standard input)")
    parser.add_argument(
        "--top", type=parse_positive, default=5, metavar="K", help="number of units to show (%(default)s)"
    )
    parser.add_argument("--ngrams", action="store_true", help="rank n-grams only")
    parser.add_argument("--json", action="store_true", help="print one JSON object per line: text and masks")
    parser.add_argument(
        "--precision", choices=PRECISIONS, default=PRECISIONS[0], help="of matrix products (%(default)s)"
    )
    # With parse_args, an option between MODEL and the first text would be an error.
    arguments = parser.parse_intermixed_args()
    # Bytes of an argument that are not UTF-8 are surrogates here.
    texts = [
        (f"text {number}", text.encode("utf-8", "surrogateescape")) for number, text in enumerate(arguments.text, 1)
    ]
    model = Model.load(arguments.model, arguments.precision)
    for note in model.notes:
        print_note(f"{model.folder}: {note}")
    load_paddle()
    use_device(check_device("auto", arguments.precision, precision_key="--precision"))
    model.prepare(PROBABILITIES)
    answers = Answers(
        texts or read_lines([]),
        lambda line: (decoded(line),),
        lambda texts: model.texts.encode_masked(texts[0]),
        lambda rows: model.fill(rows, arguments.top, arguments.ngrams),
        # Samples of a generator depend on the other texts of a batch. At a terminal, each line is answered at once.
        1 if model.has_generator or (not texts and sys.stdin.isatty()) else LINES_PER_BATCH,
    )
    for _, (text,), guesses in answers:
        with above_bars(sys.stdout):
            show(text, guesses, arguments.json)
    if answers.invalid:
        sys.exit(2)
