"""Write a model as a folder that `paddle.inference` runs, or in ONNX, with its tokenizer settings.

    ernie-gram export-inference output/base encoder_model
    ernie-gram export-inference output/base fill_mask_model --outputs fill_mask
    ernie-gram export-inference output/base onnx_model --to onnx

`ernie-gram infer` and `ernie-gram fill-mask` answer texts with such a folder, whose files are listed in
ernie_gram/inference/description.py.
"""

from __future__ import annotations

from reader.commands import run_command

if __name__ == "__main__":
    run_command("ernie_gram.export_inference")

import argparse
from pathlib import Path

from ernie_gram.distributed.world import World, start_world
from ernie_gram.formats.model import ModelRecord
from ernie_gram.formats.registry import read_model
from ernie_gram.inference.description import ENCODER, FILL_MASK, KINDS, PROBABILITIES
from ernie_gram.inference.onnx_folder import ONNX, TO, check_onnx, export_onnx
from ernie_gram.pretraining.config import max_tokens, prediction_config
from reader.errors import InputError, OneLineParser, first_line, print_note
from reader.lexicon.lexicon_file import segmenter_of
from reader.system.output_files import claimed_new_folder

FORMS = ("inference", ONNX)


def check_exportable(model: ModelRecord, outputs: str) -> None:
    """Raise InputError if a model lacks the heads that these outputs need."""
    if outputs == FILL_MASK and model.pretraining is None:
        raise InputError(f"{model.source}: has no prediction heads; use --outputs {ENCODER}")


def export_model(model: ModelRecord, outputs: str, folder: Path, world: World) -> None:
    """Write a model as an exported model (see inference/description.py).

    Args:
        outputs: "encoder", for the vectors of inference/export.py; or "fill_mask", for the probabilities of
            all units in the masked slots, as `fill_mask` computes them. With a generator, the program draws its samples
            itself, the same ones as `fill_mask`.

    Raises InputError if the folder exists or cannot be written, or if the model lacks what these outputs need.
    """
    from ernie_gram.inference.export import ENCODER_SHAPES, export_program
    from ernie_gram.inference.forward import build_outputs, network_of

    check_exportable(model, outputs)
    shapes, lexicon = {PROBABILITIES: "MC"} if outputs == FILL_MASK else ENCODER_SHAPES, None
    network = network_of(model)
    program = build_outputs(network, tuple(shapes), portable=True)
    if outputs == FILL_MASK:
        objective = prediction_config(model).objective
        lexicon = model.lexicon if objective.is_explicit else None
        task = {"has_generator": objective.has_generator, "has_ngrams": lexicon is not None}
    else:
        task = {"has_sentence_types": model.config.has_sentence_types}
    export_program(
        folder,
        program,
        model,
        outputs,
        {name: shapes[name] for name in program.fetches},
        max_tokens(model),
        segmenter_of(model.lexicon),
        world.place,
        task,
        lexicon,
        network=network,
    )


def main() -> None:
    """Run the command line."""
    parser = OneLineParser(description=first_line(__doc__))
    parser.add_argument("model", type=Path, metavar="MODEL", help="a run's folder, a step_N or a model folder")
    parser.add_argument("folder", type=Path, metavar="DST", help="the folder to write; it must not exist")
    parser.add_argument(
        "--outputs",
        choices=KINDS,
        default=ENCODER,
        help="vectors of texts, or the units behind [MASK], for a model with prediction heads (%(default)s)",
    )
    parser.add_argument(TO, choices=FORMS, default=FORMS[0], help="for paddle.inference, or as ONNX (%(default)s)")
    arguments = parser.parse_args()
    with claimed_new_folder(arguments.folder):
        export(arguments)


def export(arguments: argparse.Namespace) -> None:
    """Export MODEL to DST, and print what was written; raises InputError."""
    model = read_model(arguments.model)
    check_exportable(model, arguments.outputs)
    if arguments.to == ONNX:
        check_onnx()
        world = start_world("cpu")
        export_onnx(arguments.folder, lambda folder: export_model(model, arguments.outputs, folder, world))
    else:
        export_model(model, arguments.outputs, arguments.folder, start_world("auto"))
    for note in model.notes:
        print_note(f"{model.source}: {note}")
    print(f"{arguments.folder}: {arguments.outputs} outputs of {model.source} ({model.format})")
    if arguments.outputs == ENCODER and model.pretraining is not None:
        print(f"the model has prediction heads as well: --outputs {FILL_MASK} exports them")
