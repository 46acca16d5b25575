"""Export a fine-tuned model with its output layer: a model folder of PaddleNLP, or a program for paddle.inference.

    ernie-gram export output/mrpc mrpc_model --to paddlenlp
    ernie-gram export output/mrpc mrpc_program --to inference
    ernie-gram export output/mrpc mrpc_onnx --to onnx

`ernie-gram predict` runs the program as it runs a fine-tuned model.
"""

from __future__ import annotations

from reader.commands import run_command

if __name__ == "__main__":
    run_command("tasks.export")

import argparse
from dataclasses import replace
from pathlib import Path

from ernie_gram.config.checks import require
from ernie_gram.distributed.device import on_cpu
from ernie_gram.distributed.world import World, start_world
from ernie_gram.formats import paddlenlp
from ernie_gram.formats.heads import TASK_PREFIX
from ernie_gram.formats.model import Obstacle
from ernie_gram.formats.paddlenlp import TaskHead
from ernie_gram.formats.parameters import HEAD_TRANSFORM
from ernie_gram.formats.registry import accepted_losses
from ernie_gram.inference.onnx_folder import ONNX, check_onnx, export_onnx
from reader.batches.fields import SENTENCE_IDS
from reader.errors import OneLineParser, first_line, print_note
from reader.system.atomic_files import atomic_folder
from reader.system.output_files import claimed_new_folder
from tasks.files.own_texts import plain_values
from tasks.kinds.sentences import SentenceKind
from tasks.training.finetuned import (
    FILE_NAME,
    TASK_FILE,
    TASK_SCORES,
    LoadedModel,
    as_json,
    described_folder,
    load_finetuned,
)

PADDLENLP, INFERENCE = "paddlenlp", "inference"
CUT = (
    "PaddleNLP reads only the beginning of a text of more than `model_max_length` tokens, this package also other parts"
)


def paddlenlp_head(finetuned: LoadedModel) -> tuple[TaskHead | None, list[Obstacle]]:
    """Return the output layer as PaddleNLP's class stores it; or None, and the reason why that class cannot store it.

    The reason is never a loss that --accept_loss accepts: without a part of the output layer, the results would differ.
    """
    assert finetuned.model is not None
    parameters, kind = finetuned.model.parameters, finetuned.kind
    if kind.paddlenlp_class is None:
        reason = f"{kind.name.replace('_', ' ')}: PaddleNLP has no such class of ErnieGram"
    elif HEAD_TRANSFORM[0] in parameters:
        name = HEAD_TRANSFORM[0].rpartition(".")[0]
        reason = f"{name} under the output layer; fine-tune with --head.lm_transform false to export the model"
    elif not (kind.has_pooler or kind.scores_slots):
        output = kind.settings.head.sentence_output
        reason = f"head.sentence_output {output}: PaddleNLP's class reads the pooled output"
    else:
        weight, bias = parameters[f"{kind.output}_w"], parameters[f"{kind.output}_b"]
        return TaskHead(kind.paddlenlp_class, weight, bias, kind.classes, kind.problem_type), []
    return None, [Obstacle(reason, is_loss=False)]


def export_paddlenlp(finetuned: LoadedModel, folder: Path, accept_loss: bool) -> list[str]:
    """Write a model folder that PaddleNLP's class for the kind of task loads, and task.json.

    Returns what was lost, one line each. Raises InputError if PaddleNLP cannot hold the model.
    """
    assert finetuned.model is not None
    head, obstacles = paddlenlp_head(finetuned)
    kept = {name: values for name, values in finetuned.model.parameters.items() if not name.startswith(TASK_PREFIX)}
    model = replace(finetuned.model, parameters=kept)
    lost = accepted_losses(model, PADDLENLP, [*obstacles, *paddlenlp.cannot_hold(model)], accept_loss)
    with atomic_folder(folder) as partial:
        inputs, has_pairs = finetuned.description.settings.input, "text_b" in plain_values(finetuned.task)
        is_cut = isinstance(finetuned.kind, SentenceKind) and not has_pairs and inputs.long_text != "head"
        different = [f"{CUT} (`input.long_text` is `{inputs.long_text}`)."] if is_cut else []
        paddlenlp.write(model, partial, folder.name, head, inputs.max_seq_len, different)
        (partial / FILE_NAME).write_text(as_json(finetuned.description), encoding="utf-8")
    return lost


def export_inference(finetuned: LoadedModel, folder: Path, world: World, task_file: Path | None) -> None:
    """Write an exported program (see ernie_gram/inference/description.py) that computes the scores of units.

    Args:
        task_file: the YAML file of a custom task.

    Raises InputError if the folder exists or cannot be written.
    """
    # Imported late: they load Paddle, which takes seconds, and errors are reported without it.
    from ernie_gram.inference.export import export_program
    from tasks.training.network import SCORES, TaskNetwork, build_prediction

    model = finetuned.model
    assert model is not None
    description = finetuned.description
    if on_cpu():
        description = replace(description, precision="float32")  # a portable program computes in float32
    network = TaskNetwork.of(finetuned.kind, model.config, model.parameters)
    program = build_prediction(network, finetuned.description.precision, portable=True)
    if not model.config.use_sentence_embedding:
        # Paddle refuses feeds that no fetch depends on.
        program = replace(program, feeds=tuple(name for name in program.feeds if name != SENTENCE_IDS.name))
    further = {FILE_NAME: as_json(description).encode()}
    if task_file is not None:
        further[TASK_FILE] = task_file.read_bytes()
    export_program(
        folder,
        program,
        model,
        TASK_SCORES,
        {SCORES: "UW"},
        description.settings.input.max_seq_len,
        description.segmenter,
        world.place,
        further=further,
        network=network.described(),
    )


def main() -> None:
    """Run the command line."""
    parser = OneLineParser(description=first_line(__doc__))
    parser.add_argument("run", type=Path, metavar="RUN", help="the folder of a fine-tuning, or a checkpoint in it")
    parser.add_argument("folder", type=Path, metavar="DST", help="the folder to write; it must not exist")
    parser.add_argument("--to", choices=(PADDLENLP, INFERENCE, ONNX), required=True, help="the form of the export")
    parser.add_argument(
        "--accept_loss", action="store_true", help="with paddlenlp: write what it can hold, and list what is lost"
    )
    arguments = parser.parse_args()
    with claimed_new_folder(arguments.folder):
        export(arguments)


def export(arguments: argparse.Namespace) -> None:
    """Export RUN to DST, and print what was lost and written; raises InputError."""
    finetuned = load_finetuned(arguments.run)
    reason = f"{arguments.run} is an exported program; give the run that it was made from"
    require(finetuned.model is not None, "RUN", reason)
    for note in finetuned.notes:
        print_note(note)
    if arguments.to == PADDLENLP:
        lost = export_paddlenlp(finetuned, arguments.folder, arguments.accept_loss)
        for reason in lost:
            print(f"lost     {reason}")
    else:
        task_file = described_folder(arguments.run) / TASK_FILE
        given = task_file if task_file.is_file() else None
        if arguments.to == ONNX:
            check_onnx()
            world = start_world("cpu")
            export_onnx(arguments.folder, lambda folder: export_inference(finetuned, folder, world, given))
        else:
            export_inference(finetuned, arguments.folder, start_world("auto"), given)
    files = ", ".join(sorted(f"{path.name}{'/' * path.is_dir()}" for path in arguments.folder.iterdir()))
    print(f"written  {arguments.folder}: {arguments.to} of {finetuned.source}; {files}")
