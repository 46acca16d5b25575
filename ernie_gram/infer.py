"""Answer texts, or pairs of texts, with the vectors of a model: one JSON object per line.

    ernie-gram infer MODEL --input texts.txt
    ernie-gram infer MODEL --output vectors.npz < texts.txt

MODEL is a run's folder or another model folder. A line may be a pair of texts, with a tab between. Invalid lines are
named on standard error; the valid ones are answered in order, and the exit status is then 2.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from ernie_gram.api import Model
from ernie_gram.config import require
from ernie_gram.distributed.device import check_device, use_device
from ernie_gram.distributed.loading import load_paddle
from ernie_gram.inference.description import PRECISIONS
from ernie_gram.inference.requests import Answers, pair_of_texts, read_lines
from ernie_gram.inference.texts import LINES_PER_BATCH, VECTORS
from reader.build_options import parse_positive
from reader.errors import InputError, OneLineParser, above_bars, first_line, print_note
from reader.system.atomic_files import atomic_file
from reader.system.output_files import add_output_file, check_output_path

# Texts are sorted by length within this number of batches, so that a batch has little padding.
BATCHES_PER_WINDOW = 16


def parse_arguments() -> argparse.Namespace:
    """Parse the command line; raises InputError."""
    parser = OneLineParser(description=first_line(__doc__))
    parser.add_argument("model", type=Path, metavar="MODEL", help="a run's folder, or another model folder")
    parser.add_argument(
        "--input",
        type=Path,
        nargs="+",
        default=[],
        metavar="FILE",
        help="texts, one per line (standard input); a blank line is invalid, except at the end of a file",
    )
    parser.add_argument(
        "--batch_size",
        type=parse_positive,
        default=LINES_PER_BATCH,
        metavar="N",
        help="texts per batch (%(default)s); with 1, each line is answered before the next one is read",
    )
    parser.add_argument(
        "--vector",
        choices=VECTORS,
        default="mean",
        help="mean over the tokens, the output for [CLS], or the pooler's output, if there is a pooler (%(default)s)",
    )
    parser.add_argument(
        "--precision", choices=PRECISIONS, default=PRECISIONS[0], help="of matrix products (%(default)s)"
    )
    parser.add_argument("--truncate", action="store_true", help="cut off the end of texts that are too long")
    add_output_file(parser, "write arrays instead: vectors [N, H] and the lines' names [N]", metavar="FILE.npz")
    arguments = parser.parse_args()
    if arguments.output is None and arguments.overwrite:
        raise InputError("--overwrite: is for --output; leave it out")
    if arguments.output is not None:
        if arguments.output.suffix != ".npz":
            raise InputError(f"--output: {arguments.output}: the name must end in .npz")
        check_output_path("--output", arguments.output, arguments.overwrite, arguments.input)
    return arguments


def print_vectors(answers: Answers[Any, np.ndarray]) -> None:
    """Print each vector in a JSON object, after its texts."""
    for _, texts, vector in answers:
        record = dict(zip(("text",) if len(texts) == 1 else ("text_a", "text_b"), texts, strict=True))
        # The shortest decimal numbers that are these float32 numbers.
        numbers = [float(str(number)) for number in vector]
        with above_bars(sys.stdout):
            print(json.dumps(record | {"vector": numbers}, ensure_ascii=False), flush=True)


def write_vectors(answers: Answers[Any, np.ndarray], path: Path) -> None:
    """Write `vectors`, float32 [N, H], and `names`, the file and line of each; raises InputError if there are none."""
    found = [(vector, name) for name, _, vector in answers]
    if not found:
        raise InputError(f"{path}: not written, there is no valid text")
    vectors, names = zip(*found, strict=True)
    with atomic_file(path) as partial, partial.open("wb") as file:
        np.savez(file, vectors=np.stack(vectors), names=np.array(names))
    print(f"{path}: {len(vectors):,} vectors of {len(vectors[0])} numbers")


def main() -> None:
    """Run the command line."""
    arguments = parse_arguments()
    model = Model.load(arguments.model, arguments.precision)
    for note in model.notes:
        print_note(f"{model.folder}: {note}")
    reason = f"{arguments.model} has no pooler; use mean or cls"
    require(arguments.vector != "pooled" or model.has_pooler, "--vector pooled", reason)
    load_paddle()
    use_device(check_device("auto", arguments.precision, precision_key="--precision"))
    model.prepare(arguments.vector)
    size = arguments.batch_size
    answers = Answers(
        read_lines(arguments.input),
        pair_of_texts,
        lambda texts: model.encode_parts(texts, arguments.truncate),
        lambda window: [found[arguments.vector] for found in model.answers(window, [arguments.vector], size)],
        1 if size == 1 else BATCHES_PER_WINDOW * size,
    )
    if arguments.output is not None:
        write_vectors(answers, arguments.output)
    else:
        print_vectors(answers)
    if answers.invalid:
        sys.exit(2)
