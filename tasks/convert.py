"""Convert a model to a format of model folders, to a program for paddle.inference, or to ONNX.

    ernie-gram convert SRC DST --to bert
    ernie-gram convert output/base encoder --to inference
    ernie-gram convert output/base masks --to onnx --outputs fill_mask
    ernie-gram convert output/mrpc mrpc_model --to paddlenlp

SRC is a run's folder, a `step_N`, or a model folder, whose format is recognised by its files. DST is a new folder. If
the format cannot hold all of the model, the command fails with the reason; --accept_loss leaves out what does not fit.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from functools import partial
from pathlib import Path

from ernie_gram.config import require
from ernie_gram.distributed.device import on_cpu
from ernie_gram.distributed.world import World, start_world
from ernie_gram.formats import ours, paddlenlp
from ernie_gram.formats.heads import TASK_PREFIX
from ernie_gram.formats.model import ModelRecord
from ernie_gram.formats.registry import WRITTEN_NAMES, read_model, write_model
from ernie_gram.inference.description import ENCODER, FILL_MASK, KINDS, text_settings
from ernie_gram.inference.onnx_folder import ONNX, TO, export_onnx
from reader.errors import OneLineParser, first_line
from reader.system.output_files import claimed_new_folder
from tasks.training.finetuned import (
    FILE_NAME,
    TASK_FILE,
    TASK_SCORES,
    LoadedModel,
    as_json,
    described_folder,
    load_finetuned,
)

INFERENCE = "inference"
# What may be chosen, by --to; the other formats hold what they can.
PROGRAM_OUTPUTS = (*KINDS, TASK_SCORES)
OUTPUTS = {paddlenlp.NAME: (ENCODER, TASK_SCORES), INFERENCE: PROGRAM_OUTPUTS, ONNX: PROGRAM_OUTPUTS}


def export_paddlenlp(finetuned: LoadedModel, folder: Path, accept_loss: bool) -> list[str]:
    """Write a model folder that PaddleNLP's class for the kind of task loads, and task.json.

    Returns what was lost, one line each. Raises InputError if PaddleNLP cannot hold the model.
    """
    options = {
        "head": finetuned.paddlenlp_head(),
        "max_tokens": finetuned.settings.input.max_seq_len,
        "further": {FILE_NAME: as_json(finetuned)},
    }
    return write_model(without_layer(finetuned.model), folder, paddlenlp.NAME, accept_loss, **options)


def export_task(finetuned: LoadedModel, folder: Path, world: World) -> None:
    """Write an exported program (see ernie_gram/inference/description.py) that computes the scores of units.

    Raises InputError if the folder exists or cannot be written.
    """
    # Imported late: they load Paddle, which takes seconds, and errors are reported without it.
    from ernie_gram.inference.export import export_program
    from tasks.training.network import SCORES, TaskNetwork, build_prediction

    model = finetuned.model
    # A portable program computes in float32.
    description = replace(finetuned, precision="float32") if on_cpu() else finetuned
    network = TaskNetwork.of(finetuned.kind, model.config, model.parameters)
    program = build_prediction(network, finetuned.precision, portable=True)
    further = {FILE_NAME: as_json(description).encode()}
    own = (described_folder(finetuned.source) or folder) / TASK_FILE
    if own.is_file():
        further[TASK_FILE] = own.read_bytes()
    most = description.settings.input.max_seq_len
    text = replace(text_settings(model), max_tokens=most, segmenter=description.segmenter)
    export_program(folder, program, model, TASK_SCORES, {SCORES: "UW"}, text, world.place, further)


def without_layer(model: ModelRecord) -> ModelRecord:
    """Return a model without the output layer of a task."""
    kept = {name: values for name, values in model.parameters.items() if not name.startswith(TASK_PREFIX)}
    return replace(model, parameters=kept)


def main() -> None:
    """Run the command line."""
    forms = (*WRITTEN_NAMES, INFERENCE, ONNX)
    parser = OneLineParser(description=first_line(__doc__))
    parser.add_argument("source", type=Path, metavar="SRC", help="a run's folder, a step_N or a model folder")
    parser.add_argument("target", type=Path, metavar="DST", help="the folder to write; it must not exist")
    parser.add_argument(
        TO, choices=forms, default=ours.NAME, metavar="FORMAT", help=f"{', '.join(forms)} (default: %(default)s)"
    )
    parser.add_argument(
        "--outputs",
        choices=PROGRAM_OUTPUTS,
        help="of paddlenlp and programs: vectors of texts, the units behind [MASK], for a model with prediction heads, "
        "or the scores of a task (default: those of a fine-tuned model, or else the vectors)",
    )
    parser.add_argument(
        "--accept_loss", action="store_true", help="write what the format can hold, and list what is lost"
    )
    arguments = parser.parse_args()
    with claimed_new_folder(arguments.target):
        convert(arguments)


def convert(arguments: argparse.Namespace) -> None:
    """Convert SRC to DST, and print what was read, lost and written; raises InputError."""
    source, target, form, outputs = arguments.source, arguments.target, arguments.to, arguments.outputs
    is_known = outputs is None or outputs in OUTPUTS.get(form, ())
    require(is_known, "--outputs", f"{outputs} cannot be chosen for {form}; leave it out")
    model = read_model(source)
    has_layer = any(name.startswith(TASK_PREFIX) for name in model.parameters)
    outputs = outputs or (TASK_SCORES if has_layer and described_folder(source) else ENCODER)
    finetuned = load_finetuned(source, model) if outputs == TASK_SCORES and form in OUTPUTS else None
    print(f"read     {model.source}: {model.format}; {model.summary}")
    for note in finetuned.notes if finetuned else model.notes:
        print(f"note     {note}")
    if arguments.outputs == ENCODER:
        model = without_layer(model)
    elif has_layer and arguments.outputs is None and form in (INFERENCE, ONNX) and not finetuned:
        print(
            f"note     the output layer of a task is left out: there is no {FILE_NAME}; give the run of the fine-tuning"
        )
    lost = []
    if form in (INFERENCE, ONNX):
        has_outputs = outputs != FILL_MASK or model.pretraining is not None
        require(has_outputs, str(model.source), f"has no prediction heads; use --outputs {ENCODER}")
        # It loads Paddle, which takes seconds, and the errors above are reported without it.
        world = start_world("cpu" if form == ONNX else "auto")
        from ernie_gram.inference.export import export_model

        write = partial(export_task, finetuned) if finetuned else partial(export_model, model, outputs)
        if form == ONNX:
            export_onnx(target, lambda folder: write(folder, world))
        else:
            write(target, world)
    elif finetuned:
        lost = export_paddlenlp(finetuned, target, arguments.accept_loss)
    else:
        lost = write_model(model, target, form, arguments.accept_loss)
    for reason in lost:
        print(f"lost     {reason}")
    files = ", ".join(sorted(f"{path.name}{'/' * path.is_dir()}" for path in target.iterdir()))
    print(f"written  {target}: {form}; {files}")
