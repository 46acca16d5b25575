"""Write an exported model, whose files description.py lists, and compute with it, which needs no checkpoint.

Its network is built again, with the kernels for this device, over the parameters of the export: `paddle.inference` ends
a process in which a program has compiled operations (Paddle 3.3.1).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import paddle

from ernie_gram.distributed.device import current_place
from ernie_gram.distributed.world import World
from ernie_gram.formats.model import ModelRecord
from ernie_gram.graph import static_mode
from ernie_gram.inference.description import (
    FILL_MASK,
    PROBABILITIES,
    PROGRAM,
    Description,
    check_exportable,
    load_description,
)
from ernie_gram.inference.export import ENCODER_SHAPES, export_program
from ernie_gram.inference.forward import Forward, build_outputs, network_of
from ernie_gram.paddle_private import Place
from ernie_gram.pretraining.config import max_tokens, prediction_config
from ernie_gram.run.checkpoint import Arrays
from ernie_gram.training.program import Program
from reader.errors import InputError
from reader.lexicon.lexicon_file import segmenter_of


def exported_forward(
    folder: Path,
    description: Description | None = None,
    place: Place | None = None,
    precision: str = "float32",
    build: Callable[..., Program] = build_outputs,
) -> Forward:
    """Return the forward program of a folder that `export.export_program` wrote.

    Args:
        description: the result of `load_description` for this folder, if the caller has it already.
        place: None for the device of this process.
        precision: of matrix products.
        build: builds a program as `build_outputs` does.

    Raises InputError as `load_description`, and if this version of Paddle cannot load the program; at the first use, if
    this device does not have the precision.
    """
    description = description or load_description(folder)
    built, parameters = partial(build, description.network), exported_parameters(folder, description)
    return Forward(built, parameters, str(folder), place or current_place(), precision)


def exported_parameters(folder: Path, description: Description) -> Arrays:
    """Return the parameters of an exported program; raises InputError if this version of Paddle cannot load it."""
    scope, executor, arrays = paddle.static.Scope(), paddle.static.Executor(paddle.CPUPlace()), {}
    with static_mode(scope):
        try:
            program, _, _ = paddle.static.load_inference_model(str(folder / Path(PROGRAM).stem), executor)
        except (RuntimeError, ValueError) as error:
            raise InputError(
                f"{folder}: Paddle {paddle.__version__} cannot load this program, written by Paddle "
                f"{description.paddle}: {error}"
            ) from error
    for parameter in program.global_block().all_parameters():
        arrays[parameter.name] = np.array(scope.find_var(parameter.name).get_tensor())
        scope.erase([parameter.name])
    return arrays


def export_model(model: ModelRecord, outputs: str, folder: Path, world: World) -> None:
    """Write a model as an exported model (see inference/description.py).

    Args:
        outputs: "encoder", for the vectors of inference/export.py; or "fill_mask", for the probabilities of
            all units in the masked slots, as `fill_mask` computes them. With a generator, the program draws its samples
            itself, the same ones as `fill_mask`.

    Raises InputError if the folder exists or cannot be written, or if the model lacks what these outputs need.
    """
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
