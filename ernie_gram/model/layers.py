"""Layers with parameters, under upstream ERNIE's names. No other file creates a parameter.

Weights are [in, out]. They start, like tables, as a normal truncated at two standard deviations; biases start at 0,
scales at 1.
"""

from __future__ import annotations

import paddle
from paddle import nn
from paddle.nn import functional as F
from paddle.nn.initializer import Constant, Initializer, TruncatedNormal

LAYER_NORM_EPSILON = 1e-5


def ones_for(rows: paddle.Tensor) -> paddle.Tensor:
    """A column with a 1 for each of some rows, float32 [N, 1]."""
    return paddle.ones([paddle.shape(rows)[0], 1], "float32")


def add_bias(x: paddle.Tensor, bias: paddle.Tensor, ones: paddle.Tensor | None = None) -> paddle.Tensor:
    """x [N, size] + bias [size], in x's precision; `ones` are those of `ones_for`, if they are there already.

    In float32 the bias is spread out by a product with ones, whose gradient is a product too: on a CPU the gradient
    of a broadcasting addition (or of F.linear) takes several times as long as the matrix product before it.
    """
    if x.dtype != bias.dtype:
        return x + bias.astype(x.dtype)
    return x + paddle.matmul(ones_for(x) if ones is None else ones, bias.unsqueeze(0))


def truncated_normal(std: float) -> Initializer:
    """A normal cut off at two standard deviations; Paddle takes the bounds as they are, not in units of `std`."""
    return TruncatedNormal(std=std, a=-2 * std, b=2 * std)


class _Named(nn.Layer):
    """A layer that names its parameters outright, so that every program built finds the same ones."""

    def parameter(self, name: str, shape: list[int], initializer: Initializer) -> paddle.Tensor:
        return self.create_parameter(shape, attr=paddle.ParamAttr(name=name, initializer=initializer))


class Linear(_Named):
    """x W + b for rows x [N, in], with parameters `{name}.w_0` [in, out] and `{name}.b_0` [out].

    `weight` and `bias` take the place of the two names where upstream's are irregular.
    """

    def __init__(
        self,
        name: str,
        size_in: int,
        size_out: int,
        initializer_range: float,
        weight: str | None = None,
        bias: str | None = None,
    ) -> None:
        super().__init__()
        start = truncated_normal(initializer_range)
        self.weight = self.parameter(weight or f"{name}.w_0", [size_in, size_out], start)
        self.bias = self.parameter(bias or f"{name}.b_0", [size_out], Constant(0.0))

    def forward(self, x: paddle.Tensor, ones: paddle.Tensor | None = None) -> paddle.Tensor:
        return add_bias(paddle.matmul(x, self.weight), self.bias, ones)


class LayerNorm(_Named):
    """Normalisation over the last axis, with `{name}_scale` and `{name}_bias`."""

    def __init__(self, name: str, size: int) -> None:
        super().__init__()
        self.size = size
        self.scale = self.parameter(f"{name}_scale", [size], Constant(1.0))
        self.bias = self.parameter(f"{name}_bias", [size], Constant(0.0))

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        return F.layer_norm(x, [self.size], self.scale, self.bias, LAYER_NORM_EPSILON)


class Table(_Named):
    """One row of `size` numbers for each of `rows` things, named `name`."""

    def __init__(self, name: str, rows: int, size: int, initializer_range: float) -> None:
        super().__init__()
        self.rows, self.size = rows, size
        self.weight = self.parameter(name, [rows, size], truncated_normal(initializer_range))

    def forward(self, ids: paddle.Tensor) -> paddle.Tensor:
        return F.embedding(ids, self.weight)


class Bias(_Named):
    """A vector of `size` numbers that starts at 0, named `name`."""

    def __init__(self, name: str, size: int) -> None:
        super().__init__()
        self.value = self.parameter(name, [size], Constant(0.0))
