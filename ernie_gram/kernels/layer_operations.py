"""Encoder layers as operations of Paddle programs on a CPU: several without gradients, or one that is trained."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
import paddle

from ernie_gram.kernels.custom_operations import Result, Shape, add_operation
from ernie_gram.kernels.encoder_layers import (
    Given,
    Layer,
    Parameters,
    Settings,
    infer_layers,
    layer_gradients,
    train_layer,
)
from ernie_gram.kernels.operations import with_gradients
from ernie_gram.paddle_private import Value

# Of the inputs of layers: the first of what they read besides their rows, of their parameters, and of what follows.
_GIVEN, _PARAMETERS = 1, 1 + len(Given._fields)
_REST = _PARAMETERS + len(Parameters._fields)


class _Selected(NamedTuple):
    """A result of layers with a row for each that the last one returns: the wanted ones, and query rows.

    Attributes:
        last: its width.
        places: numbers of the inputs `wanted` and `slots`, or of the first of them.
    """

    last: int
    places: tuple[int, ...]
    dtype: str = "float32"
    in_place: bool = False

    def shape(self, shapes: Sequence[Shape | None]) -> list[int]:
        """Return its shape, given those of the inputs; a size that is not known is -1."""
        sizes = [size for place in self.places for size in [shapes[place] or ()]]
        return [sum(map(math.prod, sizes)) if all(min(size) >= 0 for size in sizes) else -1, self.last]


def _result(given: Given, width: int) -> Result | _Selected:
    if given.wanted is None:
        return Result(0, last=width)
    names = ("wanted",) if given.slots is None else ("wanted", "slots")
    return _Selected(width, tuple(_GIVEN + Given._fields.index(name) for name in names))


def encoder_layers(rows_NH: Value, layers: Sequence[Sequence[Value]], given: Given, settings: Settings) -> Value:
    """Return rows, [M, H], after several layers without dropout, as one operation.

    Args:
        layers: the parameters of each, in the order of Parameters.
    """
    inputs = (rows_NH, *given, *(value for layer in layers for value in layer))
    results = (_result(given, int(rows_NH.shape[-1])),)
    return add_operation("encoder_layers", _encoder_layers, inputs, results, settings)[0]


def _encoder_layers(x: np.ndarray, *arrays_and_settings: Any) -> None:
    *arrays, out, settings = arrays_and_settings
    given, width = Given(*arrays[: _PARAMETERS - _GIVEN]), len(Parameters._fields)
    places = range(len(given), len(arrays), width)
    infer_layers(x, [Parameters(*arrays[i : i + width]) for i in places], given, settings, out)


def matrices_of_layers(program: paddle.static.Program) -> list[str]:
    """Return the names of the matrices by which `encoder_layers` multiplies in a program."""
    block = program.global_block()
    names = {parameter.id: parameter.name for parameter in block.all_parameters()}
    found = [operation for operation in block.ops if "compiled_encoder_layers" in operation.name()]
    read = [value for operation in found for value in operation.operands_source() if value.id in names]
    return [names[value.id] for value in read if len(value.shape) == 2]


def encoder_layer(
    rows_NH: Value, layer: Sequence[Value], given: Given, key: Value, settings: Settings, recomputes: bool
) -> Value:
    """Return rows, [M, H], after a layer with dropout, with its gradients.

    Args:
        layer: its parameters, in the order of Parameters.
        key: int32 [2], which decides the masks.
        recomputes: whether the backward pass computes the layer again, except for the attention, which is kept.
    """
    width, inner = layer[Parameters._fields.index("inner")].shape
    kept: list[Result | _Selected] = [Result(0), Result(0, last=settings.heads), Result(0, last=3 * width)]
    kept += [_result(given, size) for size in (width, width, inner, inner, width)]
    inputs = (rows_NH, *given, *layer, key)
    results = (_result(given, width), *kept[: 2 if recomputes else None])
    out, *found = add_operation("encoder_layer", _encoder_layer, inputs, results, settings)
    # The biases get gradients if they are trained.
    biases = [_GIVEN + Given._fields.index(name) for name in ("bias", "self_bias")]
    trained = tuple(inputs[i] is not None and not inputs[i].stop_gradient for i in biases)
    places = [0, *range(_PARAMETERS, _REST), *compress(biases, trained)]

    def backward(gradient: Value) -> list[Value | None]:
        read, results = (*inputs, *found, gradient), tuple(map(Result, places))
        made = add_operation(
            "encoder_layer_backward", _encoder_layer_backward, read, results, len(found), trained, settings
        )
        of_inputs = dict(zip(places, made, strict=True))
        return [of_inputs.get(i) for i in range(len(inputs))]

    return with_gradients(out, [*inputs, *found], backward)


def _encoder_layer(x: np.ndarray, *arrays_and_settings: Any) -> None:
    layer, (out, *kept) = _layer(arrays_and_settings)
    train_layer(layer, x, out, kept)


def _encoder_layer_backward(x: np.ndarray, *arrays_and_settings: Any) -> None:
    *others, count, trained, settings = arrays_and_settings
    layer, others = _layer((*others, settings))
    kept, (gradient, of_x, *found) = others[:count], others[count:]
    biases = [found.pop() if is_trained else None for is_trained in reversed(trained)]
    layer_gradients(layer, x, kept, gradient, of_x, Parameters(*found), *reversed(biases))


def _layer(arrays_and_settings: Sequence[Any]) -> tuple[Layer, list[np.ndarray]]:
    """Return a layer, given its inputs after the rows, further arrays, and settings; and the further arrays."""
    *arrays, settings = arrays_and_settings
    given, parameters = Given(*arrays[: _PARAMETERS - 1]), Parameters(*arrays[_PARAMETERS - 1 : _REST - 1])
    key, *others = arrays[_REST - 1 :]
    return Layer(parameters, given, key, settings), others
