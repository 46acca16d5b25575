"""Answer texts with an exported model: one JSON object per line.

    ernie-gram infer MODEL --input texts.txt     # a vector per line, or the units behind [MASK]
    ernie-gram infer MODEL --output vectors.npz < texts.txt

MODEL is a folder that `ernie-gram export-inference` wrote. Invalid lines are named on standard error; the
valid ones are answered in order, and the exit status is then 2.
"""

from __future__ import annotations

from reader.commands import run_command

if __name__ == "__main__":
    run_command("ernie_gram.infer")

import argparse
import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ernie_gram.api import ExportedModel
from ernie_gram.distributed.loading import load_paddle
from ernie_gram.inference.description import ENCODER, FILL_MASK, KINDS, Description, load_description
from ernie_gram.inference.requests import (
    Answers,
    answering,
    json_request,
    pair_request,
    read_lines,
    single_request,
)
from ernie_gram.inference.units import DRAWS, LINES_PER_BATCH, as_records
from reader.errors import InputError, OneLineParser
from reader.system.atomic_files import atomic_file
from reader.system.output_files import add_output_file, check_output_path
from reader.system.progress import progress

VECTORS = ("mean", "cls", "pooled")
# The options that only one kind of outputs has, with their defaults.
OPTIONS: dict[str, dict[str, Any]] = {
    ENCODER: {"vector": VECTORS[0], "truncate": False, "output": None},
    FILL_MASK: {"top": 5, "ngrams": False, "draws": DRAWS},
}


def parse_arguments() -> argparse.Namespace:
    """Parse the command line; raises InputError. An option of OPTIONS that is not given is None."""
    parser = OneLineParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("model", type=Path, metavar="MODEL", help="folder that `ernie-gram export-inference` wrote")
    parser.add_argument(
        "--input",
        type=Path,
        nargs="+",
        default=[],
        metavar="FILE",
        help="texts, one per line (standard input); a blank line is invalid, except at the end of a file",
    )
    parser.add_argument(
        "--layout",
        choices=("lines", "json"),
        default="lines",
        help='json: every line is a JSON object with "text", or "text_a" and "text_b"; the answer repeats its keys '
        "(%(default)s)",
    )
    parser.add_argument(
        "--batch_size",
        type=int,
        default=LINES_PER_BATCH,
        metavar="N",
        help="texts per batch (%(default)s); with 1, each line is answered before the next one is read",
    )
    encoder = parser.add_argument_group("encoder outputs", "a line may be a pair of texts, with a tab between them")
    encoder.add_argument(
        "--vector",
        choices=VECTORS,
        help="mean over the tokens, the output for [CLS], or the pooler's output, if there is a pooler (mean)",
    )
    encoder.add_argument("--truncate", action="store_true", default=None, help="cut off the end of texts too long")
    meaning = "write arrays instead: vectors [N, H] and the lines' names [N]"
    add_output_file(encoder, "--output", meaning, metavar="FILE.npz")
    masks = parser.add_argument_group("fill-mask outputs")
    masks.add_argument("--top", type=int, metavar="K", help="number of units for each [MASK] (5)")
    masks.add_argument("--ngrams", action="store_true", default=None, help="rank n-grams only")
    masks.add_argument("--draws", type=int, metavar="N", help=f"see ernie-gram fill-mask ({DRAWS})")
    arguments = parser.parse_args()
    for name in ("batch_size", "top", "draws"):
        if (getattr(arguments, name) or 1) < 1 or getattr(arguments, name) == 0:
            raise InputError(f"--{name}: must be at least 1")
    for path in arguments.input:
        if not path.is_file():
            raise InputError(f"{path}: no such file")
    if arguments.output is None and arguments.overwrite:
        raise InputError("--overwrite: is for --output; leave it out")
    if arguments.output is not None:
        if arguments.output.suffix != ".npz":
            raise InputError(f"--output: {arguments.output}: the name must end in .npz")
        check_output_path("--output", arguments.output, arguments.overwrite, arguments.input)
    return arguments


def set_defaults(arguments: argparse.Namespace, description: Description) -> None:
    """Set the options that were not given; raise InputError for options that the exported model does not have."""
    if description.outputs not in KINDS:
        raise InputError(
            f"{arguments.model}: has {description.outputs} outputs; this command answers {' and '.join(KINDS)}"
        )
    for kind, options in OPTIONS.items():
        for name, default in options.items():
            if getattr(arguments, name) is None:
                setattr(arguments, name, default)
            elif kind != description.outputs:
                raise InputError(
                    f"--{name}: for {kind} outputs, but {arguments.model} has {description.outputs} outputs"
                )
    if description.outputs == ENCODER and arguments.vector not in description.fetch_names:
        raise InputError(f"--vector {arguments.vector}: {arguments.model} has no pooler; use mean or cls")
    if arguments.ngrams and not description.task.get("has_ngrams"):
        raise InputError(f"--ngrams: {arguments.model} does not predict n-grams")


def print_answers(answers: Answers[Any, Any], key: str, plain: Callable[[Any], object]) -> None:
    """Print each answer as a JSON object, under a key after the keys of its request."""
    for request, answer in answers:
        print(json.dumps(request.record | {key: plain(answer)}, ensure_ascii=False), flush=True)


def write_vectors(answers: Answers[Any, np.ndarray], path: Path) -> None:
    """Write `vectors`, float32 [N, H], and `names`, the file and line of each; raises InputError if there are none."""
    found = [(vector, request.name) for request, vector in answers]
    if not found:
        raise InputError(f"{path}: not written, there is no valid text")
    vectors, names = zip(*found, strict=True)
    with atomic_file(path) as partial, partial.open("wb") as file:
        np.savez(file, vectors=np.stack(vectors), names=np.array(names))
    print(f"{path}: {len(vectors):,} vectors of {len(vectors[0])} numbers")


def main() -> None:
    """Run the command line."""
    arguments = parse_arguments()
    description = load_description(arguments.model)
    set_defaults(arguments, description)
    model = ExportedModel(arguments.model, description)
    load_paddle()
    with progress("loading the program"):
        model.prepare()
    with answering(arguments.input) as phase:
        lines, as_json = read_lines(arguments.input, phase.advance), arguments.layout == "json"
        answers: Answers[Any, Any]
        if description.outputs == ENCODER:
            answers = Answers(
                lines,
                json_request if as_json else pair_request,
                lambda texts: model.texts.encode(texts, arguments.truncate),
                lambda batch: model.outputs(batch, [arguments.vector])[arguments.vector],
                arguments.batch_size,
                sorts=True,
            )
            if arguments.output is not None:
                write_vectors(answers, arguments.output)
            else:
                # The shortest decimal numbers that are these float32 numbers.
                print_answers(answers, "vector", lambda vector: [float(str(number)) for number in vector])
        else:
            parse = json_request if as_json else single_request
            fill = partial(model.fill, top=arguments.top, ngrams=arguments.ngrams, draws=arguments.draws)
            sorts = not model.has_generator  # its samples depend on the position in the batch
            answers = Answers(
                lines, parse, lambda texts: model.texts.encode_masked(*texts), fill, arguments.batch_size, sorts
            )
            print_answers(answers, "masks", as_records)
    if answers.invalid:
        sys.exit(2)
