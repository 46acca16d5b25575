"""Operations of Paddle programs that run the functions of compiled.py."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import paddle
from paddle.static import MetaTensor

from ernie_gram.distributed.loading import THREADS
from ernie_gram.kernels import compiled
from reader.system.compiled import numba

_BITS = 16
Tensors = tuple[paddle.Tensor, ...]
# What ended an operation, or would have ended it; see `raised_as_they_are`.
_raised: list[BaseException] = []

# `in_place` lets a result take the memory of the first input, which nothing may read afterwards.
# An operation whose name contains "_grad" would be taken for the gradient of another one.


def _like(x: MetaTensor, dtype: paddle.dtype = paddle.float32) -> MetaTensor:
    return MetaTensor(shape=x.shape, dtype=dtype)


@paddle.static.register_op(
    name="compiled_dropout",
    infer_meta=lambda x, key, rate: (_like(x), _like(x, paddle.uint8)),
    input_names=["x", "key"],
    output_names=["out", "mask"],
)
def dropout(x: paddle.Tensor, key: paddle.Tensor, rate: float) -> Tensors:
    """Return x with numbers dropped and the others scaled up, and the mask, uint8, 1 for those that are kept."""
    return _guarded(_dropout, x, key, rate)


def _dropout(x: paddle.Tensor, key: paddle.Tensor, rate: float) -> Tensors:
    out, mask = _empty(x.shape), paddle.empty(x.shape, "uint8")
    compiled.dropout(_numbers(x), _numbers(key), _bound(rate), _scale(rate), _numbers(out), _numbers(mask))
    return out, mask


@paddle.static.register_op(
    name="compiled_masked",
    infer_meta=lambda gradient, mask, rate: _like(gradient),
    input_names=["gradient", "mask"],
    output_names=["out"],
)
def masked(gradient: paddle.Tensor, mask: paddle.Tensor, rate: float) -> paddle.Tensor:
    """Return the gradient of x, given that of x with dropout."""
    return _guarded(_masked, gradient, mask, rate)


def _masked(gradient: paddle.Tensor, mask: paddle.Tensor, rate: float) -> paddle.Tensor:
    out = _empty(gradient.shape)
    compiled.masked(_numbers(gradient), _numbers(mask), _scale(rate), _numbers(out))
    return out


@paddle.static.register_op(
    name="compiled_softmax",
    infer_meta=lambda scores, in_place: _like(scores),
    input_names=["scores"],
    output_names=["weights"],
)
def softmax(scores: paddle.Tensor, in_place: bool) -> paddle.Tensor:
    """Return the softmax over the last axis."""
    return _guarded(_attention_weights, scores, None, None, 0.0, in_place)[0]


@paddle.static.register_op(
    name="compiled_softmax_of_sum",
    infer_meta=lambda scores, bias, in_place: _like(scores),
    input_names=["scores", "bias"],
    output_names=["weights"],
)
def softmax_of_sum(scores: paddle.Tensor, bias: paddle.Tensor, in_place: bool) -> paddle.Tensor:
    """Return the softmax of scores + bias over the last axis."""
    return _guarded(_attention_weights, scores, bias, None, 0.0, in_place)[0]


@paddle.static.register_op(
    name="compiled_softmax_dropout",
    infer_meta=lambda scores, key, rate, in_place: (_like(scores), _like(scores), _like(scores, paddle.uint8)),
    input_names=["scores", "key"],
    output_names=["weights", "dropped", "mask"],
)
def softmax_dropout(scores: paddle.Tensor, key: paddle.Tensor, rate: float, in_place: bool) -> Tensors:
    """Return the softmax over the last axis; the same with dropout; and the mask, uint8, 1 for what is kept."""
    return _guarded(_attention_weights, scores, None, key, rate, in_place)


@paddle.static.register_op(
    name="compiled_softmax_dropout_of_sum",
    infer_meta=lambda scores, bias, key, rate, in_place: (_like(scores), _like(scores), _like(scores, paddle.uint8)),
    input_names=["scores", "bias", "key"],
    output_names=["weights", "dropped", "mask"],
)
def softmax_dropout_of_sum(
    scores: paddle.Tensor, bias: paddle.Tensor, key: paddle.Tensor, rate: float, in_place: bool
) -> Tensors:
    """Return the softmax of scores + bias over the last axis; the same with dropout; and the mask."""
    return _guarded(_attention_weights, scores, bias, key, rate, in_place)


def _attention_weights(
    scores: paddle.Tensor, bias: paddle.Tensor | None, key: paddle.Tensor | None, rate: float, in_place: bool
) -> Tensors:
    shape = scores.shape if bias is None else np.broadcast_shapes(scores.shape, bias.shape)
    scores, bias = (
        None if x is None else x if x.shape == shape else x.expand(shape).contiguous() for x in (scores, bias)
    )
    weights, rows = scores if in_place else _empty(shape), (-1, shape[-1])
    found = (weights,) if key is None else (weights, _empty(shape), paddle.empty(shape, "uint8"))
    none, no_mask = np.empty((0, shape[-1]), np.float32), np.empty((0, shape[-1]), np.uint8)
    dropped, mask = (none, no_mask) if key is None else (_numbers(each).reshape(rows) for each in found[1:])
    compiled.attention_weights(
        _numbers(scores).reshape(rows),
        none if bias is None else _numbers(bias).reshape(rows),
        _numbers(weights).reshape(rows),
        np.zeros(2, np.int32) if key is None else _numbers(key),
        _bound(rate),
        _scale(rate),
        dropped,
        mask,
    )
    return found


@paddle.static.register_op(
    name="compiled_softmax_backward",
    infer_meta=lambda gradient, weights, in_place: _like(weights),
    input_names=["gradient", "weights"],
    output_names=["out"],
)
def softmax_backward(gradient: paddle.Tensor, weights: paddle.Tensor, in_place: bool) -> paddle.Tensor:
    """Return the gradient of the scores, given the weights and their gradient."""
    return _guarded(_attention_weights_backward, gradient, weights, None, 0.0, in_place)


@paddle.static.register_op(
    name="compiled_softmax_dropout_backward",
    infer_meta=lambda gradient, weights, mask, rate, in_place: _like(weights),
    input_names=["gradient", "weights", "mask"],
    output_names=["out"],
)
def softmax_dropout_backward(
    gradient: paddle.Tensor, weights: paddle.Tensor, mask: paddle.Tensor, rate: float, in_place: bool
) -> paddle.Tensor:
    """Return the gradient of the scores, given the weights and the gradient of the weights with dropout."""
    return _guarded(_attention_weights_backward, gradient, weights, mask, rate, in_place)


def _attention_weights_backward(
    gradient: paddle.Tensor, weights: paddle.Tensor, mask: paddle.Tensor | None, rate: float, in_place: bool
) -> paddle.Tensor:
    out, rows = gradient if in_place else _empty(weights.shape), (-1, weights.shape[-1])
    compiled.attention_weights_backward(
        _numbers(weights).reshape(rows),
        _numbers(gradient).reshape(rows),
        np.empty((0, rows[1]), np.uint8) if mask is None else _numbers(mask).reshape(rows),
        _scale(rate),
        _numbers(out).reshape(rows),
    )
    return out


@paddle.static.register_op(
    name="compiled_layer_norm_backward",
    infer_meta=lambda x, scale, mean, variance, gradient, epsilon: (_like(x), _like(scale), _like(scale)),
    input_names=["x", "scale", "mean", "variance", "gradient"],
    output_names=["x_out", "scale_out", "bias_out"],
)
def layer_norm_backward(
    x: paddle.Tensor,
    scale: paddle.Tensor,
    mean: paddle.Tensor,
    variance: paddle.Tensor,
    gradient: paddle.Tensor,
    epsilon: float,
) -> Tensors:
    """Return the gradients of x, scale and bias of a layer norm over the last axis."""
    return _guarded(_layer_norm_backward, x, scale, mean, variance, gradient, epsilon)


def _layer_norm_backward(
    x: paddle.Tensor,
    scale: paddle.Tensor,
    mean: paddle.Tensor,
    variance: paddle.Tensor,
    gradient: paddle.Tensor,
    epsilon: float,
) -> Tensors:
    found = _empty(x.shape), _empty(scale.shape), _empty(scale.shape)
    rows = (-1, scale.shape[0])
    compiled.layer_norm_backward(
        *(_numbers(x).reshape(rows), _numbers(mean), _numbers(variance), _numbers(scale)),
        *(_numbers(gradient).reshape(rows), np.float32(epsilon), _numbers(found[0]).reshape(rows)),
        *(_numbers(found[1]), _numbers(found[2])),
    )
    return found


@paddle.static.register_op(
    name="compiled_add_bias",
    infer_meta=lambda rows, bias, in_place: _like(rows),
    input_names=["rows", "bias"],
    output_names=["out"],
)
def add_bias(rows: paddle.Tensor, bias: paddle.Tensor, in_place: bool) -> paddle.Tensor:
    """Return rows + bias for rows [..., n] and n numbers."""
    return _guarded(_add_bias, rows, bias, in_place)


def _add_bias(rows: paddle.Tensor, bias: paddle.Tensor, in_place: bool) -> paddle.Tensor:
    out = rows if in_place else _empty(rows.shape)
    bias_n = _numbers(bias)
    compiled.add_bias(_numbers(rows).reshape(-1, bias_n.size), bias_n, _numbers(out).reshape(-1, bias_n.size))
    return out


@contextmanager
def raised_as_they_are() -> Iterator[None]:
    """Raise exceptions of operations that run in the context: Paddle makes a SystemError of each."""
    try:
        yield
    except SystemError:
        if not _raised:
            raise
    if _raised:
        raise _raised.pop() from None


def _guarded(compute: Callable[..., Any], *arguments: Any) -> Any:
    """Compute an operation with as many threads as Paddle uses."""
    # Numba keeps this number for each thread that calls it.
    numba.set_num_threads(min(int(os.environ.get(THREADS, "1")), numba.config.NUMBA_NUM_THREADS))
    try:
        return compute(*arguments)
    except (KeyboardInterrupt, SystemExit) as error:
        # Paddle would print a traceback. The results are not used: the exception is raised after the program.
        _raised.append(error)
        return compute(*arguments)
    except BaseException as error:
        _raised.append(error)
        raise


def _empty(shape: Sequence[int]) -> paddle.Tensor:
    return paddle.empty(shape, "float32")


def _bound(rate: float) -> int:
    """Return in how many of 65,536 cases a number is dropped."""
    return min(round(rate * 2**_BITS), 2**_BITS - 1)


def _scale(rate: float) -> np.float32:
    return np.float32(1 / (1 - rate))


def _numbers(tensor: paddle.Tensor) -> np.ndarray:
    """Return the numbers of a tensor in main memory, [n], as an array that shares its memory."""
    assert tensor.place.is_cpu_place()
    dtype = np.dtype(str(tensor.dtype).removeprefix("paddle."))
    if not tensor.size:
        return np.empty(0, dtype)
    return np.frombuffer((ctypes.c_char * (tensor.size * dtype.itemsize)).from_address(tensor.data_ptr()), dtype)
