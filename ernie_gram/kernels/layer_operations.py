"""Encoder layers as operations of Paddle programs on a CPU: several without gradients, or one that is trained."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from typing import Any

from ernie_gram.kernels.custom_operations import Result, add_operation
from ernie_gram.kernels.encoder_layers import Given, Layer, Parameters, Settings, layer_gradients, rows_after
from ernie_gram.kernels.operations import with_gradients
from ernie_gram.paddle_private import Value

# Of the inputs of layers: the first of what they read besides their rows, the key, and the first of their parameters.
_GIVEN, _KEY = 1, 1 + len(Given._fields)
_PARAMETERS, _WIDTH = _KEY + 1, len(Parameters._fields)


def encoder_layers(
    rows_NH: Value,
    layers: Sequence[Sequence[Value]],
    given: Given,
    settings: Settings,
    key: Value | None = None,
    recomputes: bool = False,
) -> Value:
    """Return rows, [M, H], after layers, as one operation; with its gradients, if there is a key.

    Args:
        layers: the parameters of each, in the order of Parameters; of one only, if there is a key.
        key: int32 [2], which decides the masks of dropout; None for layers without dropout.
        recomputes: whether the backward pass computes the layer again, except for the attention, which is kept.
    """
    width, inner = layers[0][Parameters._fields.index("inner")].shape
    names = ("wanted",) if given.slots is None else ("wanted", "slots")
    selected = 0 if given.wanted is None else tuple(_GIVEN + Given._fields.index(name) for name in names)
    kept = [Result(0), Result(0, last=settings.heads), Result(0, last=3 * width)]
    kept += [Result(selected, last=size) for size in (width, width, inner, inner, width)]
    count = 0 if key is None else 2 if recomputes else len(kept)
    inputs = (rows_NH, *given, key, *(value for layer in layers for value in layer))
    results = (Result(selected, last=width), *kept[:count])
    out, *found = add_operation("encoder_layers", _encoder_layers, inputs, results, len(layers), settings)
    if key is None:
        return out
    # The biases get gradients if they are trained.
    biases = [_GIVEN + Given._fields.index(name) for name in ("bias", "self_bias")]
    trained = tuple(inputs[i] is not None and not inputs[i].stop_gradient for i in biases)
    places = [0, *range(_PARAMETERS, len(inputs)), *compress(biases, trained)]

    def backward(gradient: Value) -> list[Value | None]:
        read, results = (*inputs, *found, gradient), tuple(map(Result, places))
        made = add_operation(
            "encoder_layer_backward", _encoder_layer_backward, read, results, len(found), trained, settings
        )
        of_inputs = dict(zip(places, made, strict=True))
        return [of_inputs.get(i) for i in range(len(inputs))]

    return with_gradients(out, [*inputs, *found], backward)


def _encoder_layers(*arrays_and_settings: Any) -> None:
    *arrays, count, settings = arrays_and_settings
    layers, (out, *kept) = _layers(arrays, count, settings)
    rows_after(layers, arrays[0], out, kept)


def _encoder_layer_backward(*arrays_and_settings: Any) -> None:
    *arrays, count, trained, settings = arrays_and_settings
    (layer,), others = _layers(arrays, 1, settings)
    kept, (gradient, of_x, *found) = others[:count], others[count:]
    biases = [found.pop() if is_trained else None for is_trained in reversed(trained)]
    layer_gradients(layer, arrays[0], kept, gradient, of_x, Parameters(*found), *reversed(biases))


def _layers(arrays: Sequence[Any], count: int, settings: Settings) -> tuple[list[Layer], Sequence[Any]]:
    """Return the layers that inputs describe, and the arrays after them."""
    given, key, end = Given(*arrays[_GIVEN:_KEY]), arrays[_KEY], _PARAMETERS + count * _WIDTH
    parameters = [Parameters(*arrays[i : i + _WIDTH]) for i in range(_PARAMETERS, end, _WIDTH)]
    return [Layer(each, given, key, settings) for each in parameters], arrays[end:]
