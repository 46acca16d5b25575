"""Operations of Paddle programs on a CPU that run the functions of the other modules, and their gradients.

The functions that compute get arrays of the inputs, then of the results, then the settings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import paddle
from paddle.nn import functional as F

from ernie_gram.kernels import classes, compiled, rows
from ernie_gram.kernels.custom_operations import Result, add_operation, empty
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
    compiled.scaled(_flat(x), factor.item(), _flat(out))


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
    compiled.dropout(_flat(x), key, *dropped(rate), _flat(out))


def layer_norm(x: Value, scale: Value, shift: Value, epsilon: float) -> Value:
    """Return the layer norm of x [..., n] over the last axis, with scale and shift [n]."""

    def backward(gradient: Value) -> list[Value]:
        results = (Result(0), Result(1), Result(1))
        return add_operation("layer_norm_backward", _layer_norm_backward, (x, scale, gradient), results, epsilon)

    normal = F.layer_norm(x, list(scale.shape), scale, shift, epsilon)
    return with_gradients(normal, [x, scale, shift], backward)


def _layer_norm_backward(*arrays_and_epsilon: Any) -> None:
    x, scale, gradient, of_x, of_scale, of_shift, epsilon = arrays_and_epsilon
    n = scale.size
    given = _rows(x, n), scale, _rows(gradient, n), epsilon, np.empty(0, np.int32), 0, 1.0
    rows.normalised_sum_backward(*given, _rows(of_x, n), _rows(of_x, n), of_scale, of_shift, np.empty_like(scale))


def class_cross_entropy(
    x: Value, labels: Value, bias: Value, tables: Sequence[Value], temperature: float | None, rows: int, train: bool
) -> tuple[Value, Value, Value | None, list[Value]]:
    """Return the losses, the classes of the largest logits, samples, and gradients; see classes.cross_entropy.

    Args:
        temperature: None for no samples; the keys are drawn in each step.
        rows: of logits that are in memory at a time.
        train: whether to return the gradients of the sum of the losses, of x, the bias and the tables.
    """
    key = None if temperature is None else dropout_keys(1)[0]
    results = [Result(1), Result(1, "int64")]
    results += [Result(1, "int64")] * (key is not None)
    results += [Result(0), Result(2), *(Result(4 + i) for i in range(len(tables)))] * train
    settings = (len(tables), temperature, rows, train)
    found = add_operation(
        "class_cross_entropy", _class_cross_entropy, (x, labels, bias, key, *tables), tuple(results), *settings
    )
    losses, best, *others = found
    return losses, best, others.pop(0) if key is not None else None, others


def _class_cross_entropy(*arrays_and_settings: Any) -> None:
    x, labels, bias, key, *arrays, count, temperature, most, train = arrays_and_settings
    tables, (losses, best, *others) = arrays[:count], arrays[count:]
    samples = None if key is None else (key, temperature, others.pop(0))
    gradients = (others[0], others[1], others[2:]) if train else None
    logits = empty([max(1, min(most, len(x))), len(bias)])
    classes.cross_entropy(x, labels, bias, tables, logits, losses, best, samples, gradients)


def _flat(array: np.ndarray) -> np.ndarray:
    return array.reshape(-1)


def _rows(array: np.ndarray, n: int) -> np.ndarray:
    return array.reshape(-1, n)
