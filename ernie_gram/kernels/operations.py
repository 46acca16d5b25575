"""Operations of Paddle programs that run the functions of compiled.py, biases.py and attention.py.

`in_place` lets a result take the memory of the first input, which nothing may read afterwards.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np
import paddle
from paddle import Tensor

from ernie_gram.kernels import attention as compiled_attention
from ernie_gram.kernels import biases, blas, compiled
from ernie_gram.kernels.custom_operations import Result, add_operation
from ernie_gram.paddle_private import Value, in_memory_of

_BITS = 16


def dropout(x: Value, key: Value, rate: float) -> list[Value]:
    """Return x with numbers dropped and the others scaled up, and the mask, uint8, 1 for those that are kept.

    Args:
        key: int32 [2]; it decides the mask.
    """
    return add_operation("dropout", _dropout, (x, key), (Result(0), Result(0, "uint8")), rate)


def _dropout(x: Tensor, key: Tensor, rate: float) -> tuple[Tensor, ...]:
    out, mask = _empty(x.shape), _empty(x.shape, "uint8")
    compiled.dropout(_numbers(x), _numbers(key), _bound(rate), _scale(rate), _numbers(out), _numbers(mask))
    return out, mask


def masked(gradient: Value, mask: Value, rate: float) -> list[Value]:
    """Return the gradient of x, given that of x with dropout."""
    return add_operation("masked", _masked, (gradient, mask), (Result(0),), rate)


def _masked(gradient: Tensor, mask: Tensor, rate: float) -> Tensor:
    out = _empty(gradient.shape)
    compiled.masked(_numbers(gradient), _numbers(mask), _scale(rate), _numbers(out))
    return out


def softmax(scores: Value, key: Value | None, rate: float, in_place: bool) -> list[Value]:
    """Return the softmax over the last axis; and with a key, the same with dropout, and the mask."""
    results = (Result(0),) if key is None else (Result(0), Result(0), Result(0, "uint8"))
    return add_operation("softmax", _softmax, (scores, key), results, rate, in_place)


def _softmax(scores: Tensor, key: Tensor | None, rate: float, in_place: bool) -> tuple[Tensor, ...] | Tensor:
    shape = scores.shape
    weights = _result(scores, in_place)
    dropped, mask = (None, None) if key is None else (_empty(shape), _empty(shape, "uint8"))
    rows = [_rows(each, shape[-1]) for each in (scores, weights, dropped)]
    drawn = np.zeros(2, np.int32) if key is None else _numbers(key)
    compiled.attention_weights(
        rows[0], rows[1], drawn, _bound(rate), _scale(rate), rows[2], _rows(mask, shape[-1], np.uint8)
    )
    return weights if key is None else (weights, dropped, mask)


def softmax_backward(gradient: Value, weights: Value, mask: Value | None, rate: float) -> list[Value]:
    """Return the gradient of the scores, given that of the weights; or, with a mask, of the dropped ones."""
    return add_operation("softmax_backward", _softmax_backward, (gradient, weights, mask), (Result(1),), rate)


def _softmax_backward(gradient: Tensor, weights: Tensor, mask: Tensor | None, rate: float) -> Tensor:
    out, n = _empty(weights.shape), weights.shape[-1]
    compiled.attention_weights_backward(
        *(_rows(weights, n), _rows(gradient, n), _rows(mask, n, np.uint8), _scale(rate), _rows(out, n))
    )
    return out


def attention(
    projected: Value, bias: Value | None, starts: Value, lengths: Value, key: Value | None, rate: float, scale: float
) -> list[Value]:
    """Return the attention of sequences to themselves, [..., A, D], and log(sum(exp(scores))) of each row, [..., A].

    Args:
        projected: queries, keys and values of all rows, float32 [..., 3, A, D].
        bias: float32 [1, A, L, L], or None.
        starts: the first row of each sequence, and the number of rows; int64 [B + 1].
        lengths: of each sequence, int64 [B]; later rows are padding.
        key: int32 [2]; it decides the mask of dropout, None for no dropout.
    """
    results = (Result(0, axes=(0, 1, 3, 4)), Result(0, axes=(0, 1, 3)))
    return add_operation("attention", _attention, (projected, bias, starts, lengths, key), results, rate, scale)


def _attention(projected: Tensor, *others: Any) -> tuple[Tensor, ...]:
    *rows, _, heads, size = projected.shape
    out, log_sums = _empty([*rows, heads, size]), _empty([*rows, heads])
    compiled_attention.attention(*_attention_arguments(projected, *others), _by_row(out, 2), _by_row(log_sums, 1))
    return out, log_sums


def attention_backward(
    gradient: Value,
    out: Value,
    log_sums: Value,
    projected: Value,
    bias: Value | None,
    starts: Value,
    lengths: Value,
    key: Value | None,
    rate: float,
    scale: float,
    wants_bias: bool,
) -> list[Value]:
    """Return the gradient of `projected`, and that of the bias if it is asked for; see `attention`."""
    inputs = (gradient, out, log_sums, projected, bias, starts, lengths, key)
    results = (Result(3), Result(4)) if wants_bias else (Result(3),)
    return add_operation("attention_backward", _attention_backward, inputs, results, rate, scale, wants_bias)


def _attention_backward(*tensors_and_settings: Any) -> tuple[Tensor, ...] | Tensor:
    gradient, out, log_sums, *common, wants_bias = tensors_and_settings
    projected, bias = common[:2]
    found = [_empty(projected.shape), *([_empty(bias.shape)] if wants_bias else [])]
    compiled_attention.attention_backward(
        *(*_attention_arguments(*common), _by_row(out, 2), _by_row(log_sums, 1), _by_row(gradient, 2)),
        *(_by_row(found[0], 3), _of_heads(found[1] if wants_bias else None)),
    )
    return tuple(found) if wants_bias else found[0]


def _attention_arguments(
    projected: Tensor,
    bias: Tensor | None,
    starts: Tensor,
    lengths: Tensor,
    key: Tensor | None,
    rate: float,
    scale: float,
) -> tuple[Any, ...]:
    # Loads the library that the compiled function calls.
    assert blas.is_available()
    rows, first, sizes = _by_row(projected, 3), _numbers(starts), _numbers(lengths)
    # The compiled function does not check where it reads and writes.
    widths, ends = np.diff(first), (first[0], first[-1], len(first))
    are_placed = ends == (0, len(rows), len(sizes) + 1) and widths.min(initial=0) >= 0
    assert are_placed, "the sequences do not fill the rows: is a length larger than the width of the batch?"
    assert bias is None or widths.max(initial=0) <= bias.shape[-1], "a sequence is longer than the bias"
    return (
        *(rows, _of_heads(bias), first, sizes, np.empty(0, np.int32) if key is None else _numbers(key)),
        *(_bound(rate), _scale(rate), scale, int(widths.max(initial=0))),
    )


def _of_heads(bias: Tensor | None) -> np.ndarray:
    """Return the numbers of a bias [1, A, L, L] as [A, L, L]; no heads for no bias."""
    return np.empty((0, 1, 1), np.float32) if bias is None else _numbers(bias).reshape(bias.shape[1:])


def layer_norm_backward(
    x: Value, scale: Value, mean: Value, variance: Value, gradient: Value, epsilon: float
) -> list[Value]:
    """Return the gradients of x, scale and bias of a layer norm over the last axis."""
    results = (Result(0), Result(1), Result(1))
    return add_operation(
        "layer_norm_backward", _layer_norm_backward, (x, scale, mean, variance, gradient), results, epsilon
    )


def _layer_norm_backward(*tensors_and_epsilon: Any) -> tuple[Tensor, ...]:
    x, scale, mean, variance, gradient, epsilon = tensors_and_epsilon
    found, n = (_empty(x.shape), _empty(scale.shape), _empty(scale.shape)), scale.shape[0]
    compiled.layer_norm_backward(
        *(_rows(x, n), _numbers(mean), _numbers(variance), _numbers(scale), _rows(gradient, n), epsilon),
        *(_rows(found[0], n), _numbers(found[1]), _numbers(found[2])),
    )
    return found


def add_bias(rows: Value, bias: Value, in_place: bool) -> list[Value]:
    """Return rows + bias for rows [..., n] and n numbers."""
    return add_operation("add_bias", _add_bias, (rows, bias), (Result(0),), in_place)


def biased_gelu(rows: Value, bias: Value, in_place: bool) -> list[Value]:
    """Return gelu(rows + bias) for rows [..., n] and n numbers."""
    return add_operation("biased_gelu", _biased_gelu, (rows, bias), (Result(0),), in_place)


def _with_bias(compute: Callable[..., None], rows: Tensor, bias: Tensor, in_place: bool) -> Tensor:
    out = _result(rows, in_place)
    compute(_rows(rows, bias.size), _numbers(bias), _rows(out, bias.size))
    return out


_add_bias, _biased_gelu = partial(_with_bias, biases.add_bias), partial(_with_bias, biases.biased_gelu)


def packed_product(x: Value, packed: Value, width: int) -> Value:
    """Return the product of x [..., k] and a matrix [k, width] that was packed (see blas.pack)."""
    return add_operation("packed_product", _packed_product, (x, packed), (Result(0, last=width),), width)[0]


def _packed_product(x: Tensor, packed: Tensor, width: int) -> Tensor:
    out = _empty([*x.shape[:-1], width])
    blas.packed_product(_rows(x, x.shape[-1]), _numbers(packed), _rows(out, width))
    return out


def normalised_sum(
    rows: Value, bias: Value, residual: Value, scale: Value, shift: Value, epsilon: float, in_place: bool
) -> list[Value]:
    """Return the layer norm of residual + rows + bias over the last axis, with scale and shift."""
    inputs = (rows, bias, residual, scale, shift)
    return add_operation("normalised_sum", _normalised_sum, inputs, (Result(0),), epsilon, in_place)


def _normalised_sum(*tensors_and_settings: Any) -> Tensor:
    rows, bias, residual, scale, shift, epsilon, in_place = tensors_and_settings
    # As everywhere, unknown sizes are taken to be equal (see graph.skip_gradients_of_additions).
    assert rows.shape == residual.shape, "a residual that broadcasts; give it an axis of size 1 in the program"
    out, n = _result(rows, in_place), bias.size
    biases.normalised_sum(
        *(_rows(rows, n), _numbers(bias), _rows(residual, n), _numbers(scale), _numbers(shift)),
        *(epsilon, _rows(out, n)),
    )
    return out


def _empty(shape: Sequence[int], dtype: str = "float32") -> Tensor:
    return paddle.empty(shape, dtype)


def _result(x: Tensor, in_place: bool) -> Tensor:
    """Return a float32 tensor of the same shape, in new memory or in that of x.

    It is never x itself: x may have oneDNN's layout, and Paddle would assume it for later results too.
    """
    return in_memory_of(x) if in_place else _empty(x.shape)


def _bound(rate: float) -> int:
    """Return in how many of 65,536 cases a number is dropped."""
    return min(round(rate * 2**_BITS), 2**_BITS - 1)


def _scale(rate: float) -> float:
    return 1 / (1 - rate)


def _numbers(tensor: Tensor) -> np.ndarray:
    """Return the numbers of a tensor in main memory, [n], as an array that shares its memory."""
    assert tensor.place.is_cpu_place()
    dtype = _dtype(tensor.dtype)
    size = math.prod(tensor.shape) * dtype.itemsize  # `tensor.size` takes longer
    return np.frombuffer((ctypes.c_char * size).from_address(tensor.data_ptr()), dtype)


@cache
def _dtype(dtype: paddle.dtype) -> np.dtype[Any]:
    return np.dtype(str(dtype).removeprefix("paddle."))


def _by_row(tensor: Tensor, axes: int) -> np.ndarray:
    """Return the numbers of a tensor, sharing its memory, with one axis instead of all but the last `axes`."""
    return _numbers(tensor).reshape(-1, *tensor.shape[-axes:])


def _rows(tensor: Tensor | None, n: int, dtype: type = np.float32) -> np.ndarray:
    """Return the numbers of a tensor as rows of n, sharing its memory; no rows for no tensor."""
    return np.empty((0, n), dtype) if tensor is None else _numbers(tensor).reshape(-1, n)
