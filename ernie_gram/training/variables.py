"""The variables that static programs share through the scope: made in a program, read and written by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import paddle
from paddle.nn.initializer import Assign, Constant

from ernie_gram.distributed.device import current_place
from ernie_gram.paddle_private import Place, persistable, untrained_parameter
from ernie_gram.run.checkpoint import Arrays
from reader.errors import InputError

# The variables that AdamW keeps for a parameter: the parameter's name followed by each of these endings.
MOMENTS = ("_moment1_0", "_moment2_0")
# Those that it keeps for all parameters: beta1^t and beta2^t at the t-th update.
BETA_POWERS = ("beta1_power", "beta2_power")
LEARNING_RATE = "learning_rate"


def persistent(name: str, start: npt.NDArray[np.float32]) -> paddle.Tensor:
    """Return a variable of the scope for the current program, float32; the startup program sets it to `start`."""
    value = persistable(name, list(start.shape), Assign(start))
    value.stop_gradient = True
    return value


def zeros(name: str, shape: list[int]) -> paddle.Tensor:
    """Return a variable like `persistent`, which starts from zeros."""
    value = persistable(name, shape, Constant(0.0))
    value.stop_gradient = True
    return value


def moment(name: str, shape: list[int]) -> paddle.Tensor:
    """Return a variable like `zeros`, which the programs hold as a parameter that is not trained.

    Paddle runs two operations for every other variable that a program reads, and none for a parameter. There are two
    moments for each parameter, and the time before the first step grows with the square of the number of operations.
    """
    return untrained_parameter(name, shape, Constant(0.0))


def shared(name: str, shape: list[int]) -> paddle.Tensor:
    """Return a float32 variable that another program makes, for the current program."""
    with paddle.static.program_guard(paddle.static.default_main_program(), paddle.static.Program()):
        return zeros(name, shape)


def optimizer_names(parameters: list[str]) -> list[str]:
    """Return the names of the optimizer's variables for the given parameters."""
    return [*(name + ending for name in parameters for ending in MOMENTS), *BETA_POWERS]


def get_arrays(names: list[str]) -> Arrays:
    """Return copies of variables of the global scope."""
    scope = paddle.static.global_scope()
    return {name: np.array(scope.find_var(name).get_tensor()) for name in names}


def set_arrays(arrays: Arrays, names: list[str], source: str, place: Place) -> None:
    """Set variables of the global scope.

    Raises InputError, which names `source`, if an array is missing or has another shape.
    """
    scope = paddle.static.global_scope()
    for name in names:
        tensor = scope.find_var(name).get_tensor()
        check_array(arrays, name, tensor.shape(), source)
        tensor.set(arrays[name], place)


def set_array(name: str, value: npt.NDArray[np.float32]) -> None:
    """Set a variable of the global scope, on the device that this process uses."""
    paddle.static.global_scope().find_var(name).get_tensor().set(value, current_place())


def set_parameters(program: paddle.static.Program, arrays: Arrays, source: str, place: Place) -> None:
    """Put the parameters of a program that does not train into the global scope.

    Args:
        arrays: their values by name; others are ignored.

    The startup program is not needed then. It would draw start values first, which takes 9 to 15 s for an encoder of
    12 x 768 with 230,000 classes.

    Raises InputError, which names `source`, if an array is missing or has another shape.
    """
    scope = paddle.static.global_scope()
    for parameter in program.global_block().all_parameters():
        check_array(arrays, parameter.name, parameter.shape, source)
        scope.var(parameter.name).get_tensor().set(arrays[parameter.name], place)


def check_array(arrays: Mapping[str, Any], name: str, shape: Sequence[int], source: str) -> None:
    """Raise InputError, which names `source`, if a parameter is missing or has another shape."""
    if name not in arrays:
        raise InputError(f"{source}: parameter {name} is missing")
    if list(arrays[name].shape) != list(shape):
        raise InputError(f"{source}: {name} has shape {list(arrays[name].shape)}, not {list(shape)}")
