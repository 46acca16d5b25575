"""Operations of Paddle programs on a CPU that run the functions of the other modules, and their gradients.

The functions that compute get arrays of the inputs, then of the results, then the settings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import paddle
from paddle.nn import functional as F

from ernie_gram.kernels import compiled, rows
from ernie_gram.kernels.custom_operations import Result, add_operation
from ernie_gram.kernels.encoder_layers import dropped
from ernie_gram.paddle_private import Value, random_integers

_LEAST, _MOST = -(2**31), 2**31 - 1


def dropout_keys(count: int) -> list[Value]:
    """Return the keys of dropout masks, int32 [2] each, drawn in each step."""
    return paddle.unbind(random_integers(_LEAST, _MOST, 2 * count).reshape([count, 2]))


def with_gradients(
    result: Value, inputs: Sequence[Value | None], backward: Callable[[Value], Sequence[Value | None]]
) -> Value:
    """Return a result of an operation, computed without gradients, with gradients.

    A `pd_op.pylayer`, which runs its backward pass as a program of its own. That may read values of the program around
    it, but only if they are inputs.

    Args:
        inputs: all values that the backward pass reads, None for one that is not given. Nothing else may read the
            result, whose memory the returned one takes.
        backward: returns the gradients of the first inputs, given that of the result.
    """
    given = [value for value in inputs if value is not None]

    def passed_on(x: Value, *_: Value) -> Value:
        return add_operation("passed_on", _nothing, (x,), (Result(0, in_place=True),))[0]

    def gradients(gradient: Value) -> tuple[Value | None, ...]:
        found = [*backward(gradient), *[None] * len(inputs)]
        pairs = zip(inputs, found, strict=False)
        wanted = [None if value.stop_gradient else of_value for value, of_value in pairs if value is not None]
        return None, *wanted

    for each in result.get_defining_op().results():
        each.stop_gradient = True
    out = paddle.static.nn.static_pylayer(passed_on, [result, *given], gradients)
    out.stop_gradient = False
    return out


def _nothing(x: np.ndarray, out: np.ndarray) -> None:
    """Leave a result in the memory of the input."""


def scaled_gradients(total: Value, values: Sequence[Value], gradients: Sequence[Value]) -> Value:
    """Return a scalar with the value of `total`, whose gradients with respect to some values are the given ones.

    The memory of the gradients is used for their products with that of the scalar.
    """

    def backward(factor: Value) -> list[Value]:
        return [add_operation("scaled", _scaled, (each, factor), (Result(0, in_place=True),))[0] for each in gradients]

    return with_gradients(total, [*values, *gradients], backward)


def _scaled(x: np.ndarray, factor: np.ndarray, out: np.ndarray) -> None:
    compiled.scaled(x.reshape(-1), factor.item(), out.reshape(-1))


def dropout(x: Value, rate: float) -> Value:
    """Return x with numbers dropped and the others scaled up.

    A number is dropped with the probability round(65,536 p) / 65,536, which differs from p by less than 8e-6, and by
    less than 2e-5 where p is almost 1. The masks depend on Paddle's seed alone.
    """
    (key,) = dropout_keys(1)

    def dropped_of(value: Value) -> list[Value]:
        return add_operation("dropout", _dropout, (value, key), (Result(0),), rate)

    return with_gradients(dropped_of(x)[0], [x, key], dropped_of)


def _dropout(x: np.ndarray, key: np.ndarray, out: np.ndarray, rate: float) -> None:
    compiled.dropout(x.reshape(-1), key, *dropped(rate), out.reshape(-1))


def layer_norm(x: Value, scale: Value, shift: Value, epsilon: float) -> Value:
    """Return the layer norm of x [..., n] over the last axis, with scale and shift [n]."""

    def backward(gradient: Value) -> list[Value]:
        results = (Result(0), Result(1), Result(1))
        return add_operation("layer_norm_backward", _layer_norm_backward, (x, scale, gradient), results, epsilon)

    normal = F.layer_norm(x, list(scale.shape), scale, shift, epsilon)
    return with_gradients(normal, [x, scale, shift], backward)


def _layer_norm_backward(*arrays_and_epsilon: Any) -> None:
    x, scale, gradient, of_x, of_scale, of_shift, epsilon = arrays_and_epsilon
    x, gradient, of_x = (each.reshape(-1, scale.size) for each in (x, gradient, of_x))
    given = x, scale, gradient, epsilon, np.empty(0, np.int32), 0, 1.0
    rows.normalised_sum_backward(*given, of_x, of_x, of_scale, of_shift, np.empty_like(scale))
