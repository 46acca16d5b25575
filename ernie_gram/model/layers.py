"""Layers with parameters, as parameters.py declares them. No other file creates a parameter."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import paddle
from paddle import nn
from paddle.nn import functional as F
from paddle.nn.initializer import Assign, Constant, Initializer, TruncatedNormal
from paddle.nn.initializer import Normal as UntruncatedNormal

from ernie_gram.distributed.device import on_cpu
from ernie_gram.graph import float32, for_product, fuses
from ernie_gram.kernels import operations
from ernie_gram.model.parameters import LinearParameters, Normal, NormParameters, Parameter, Start

Declared = TypeVar("Declared")
Made = TypeVar("Made")


def linear(x: paddle.Tensor, weight: paddle.Tensor, bias: paddle.Tensor) -> paddle.Tensor:
    """Return x W + b for x [..., in], W [in, out] and b [out], in the precision of products."""
    x, weight, bias = (for_product(value) for value in (x, weight, bias))
    if not on_cpu():
        return F.linear(x, weight, bias)
    if paddle.in_dynamic_mode():
        # The gradient of an addition that broadcasts is slow.
        return paddle.addmm(bias, x.reshape([-1, len(weight)]), weight).reshape([*x.shape[:-1], len(bias)])
    return paddle.matmul(x, weight) + bias


def dropout(x: paddle.Tensor, rate: float, training: bool) -> paddle.Tensor:
    """Return x with dropout while training, otherwise x itself: Paddle's operation would make a copy of it.

    On a CPU, Paddle's draws one number after the other, in one thread (3.3.1).
    """
    if not training or not rate:
        return x
    return operations.dropout(x, rate) if fuses() else F.dropout(x, rate)


def initializer(start: Start) -> Initializer:
    """Return Paddle's initializer for a declared start."""
    if isinstance(start, float):
        return Constant(start)
    if not isinstance(start, Normal):
        return Assign(start())
    if not start.truncated:
        return UntruncatedNormal(std=start.std)
    # Paddle's bounds are absolute, not multiples of `std`.
    return TruncatedNormal(std=start.std, a=-2 * start.std, b=2 * start.std)


class _Declared(nn.Layer):
    """A layer whose parameters have explicit names, so that all programs share the same parameters."""

    def parameter(self, declared: Parameter) -> paddle.Tensor:
        attributes = paddle.ParamAttr(name=declared.name, initializer=initializer(declared.start))
        return self.create_parameter(list(declared.shape), attr=attributes)


class Linear(_Declared):
    """x W + b for x [..., in] (see `linear`)."""

    def __init__(self, declared: LinearParameters) -> None:
        super().__init__()
        self.weight, self.bias = self.parameter(declared.weight), self.parameter(declared.bias)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        return linear(x, self.weight, self.bias)


class LayerNorm(_Declared):
    """Normalisation over the last axis, in float32; `epsilon` is added to the variance."""

    def __init__(self, declared: NormParameters, epsilon: float) -> None:
        super().__init__()
        self.scale, self.bias = self.parameter(declared.scale), self.parameter(declared.bias)
        self.epsilon = epsilon

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        if self.training and fuses():
            # On a CPU, Paddle's gradient takes ten times as long as reading and writing its tensors (3.3.1).
            return operations.layer_norm(x, self.scale, self.bias, self.epsilon)
        return F.layer_norm(float32(x), self.scale.shape, self.scale, self.bias, self.epsilon)


class Embedding(_Declared):
    """A table of vectors, [rows, size]."""

    def __init__(self, declared: Parameter) -> None:
        super().__init__()
        self.weight = self.parameter(declared)

    def forward(self, ids: paddle.Tensor) -> paddle.Tensor:
        return F.embedding(ids, self.weight)


def embedding(declared: Parameter | None, shared: Embedding | None) -> Embedding:
    """Return the declared embedding, or `shared`, which belongs to another part, if none is declared."""
    if declared is not None:
        return Embedding(declared)
    assert shared is not None
    return shared


def optional(make: Callable[[Declared], Made], declared: Declared | None) -> Made | None:
    """Return the layer of some parameters, or None if none are declared."""
    return None if declared is None else make(declared)


class Bias(_Declared):
    """A vector of numbers."""

    def __init__(self, declared: Parameter) -> None:
        super().__init__()
        self.value = self.parameter(declared)
