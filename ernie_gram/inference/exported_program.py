"""Compute with an exported model. It needs no checkpoint.

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
from ernie_gram.graph import static_mode
from ernie_gram.inference.description import PROGRAM, Description, load_description
from ernie_gram.inference.forward import Forward, build_outputs
from ernie_gram.paddle_private import Place
from ernie_gram.run.checkpoint import Arrays
from ernie_gram.training.program import Program
from reader.errors import InputError


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
