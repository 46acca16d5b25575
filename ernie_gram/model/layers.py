"""Layers with parameters, under upstream ERNIE's names. No other file creates a parameter.

Weights have shape [in, out]. Weights and embeddings start from a normal distribution truncated at two standard
deviations, biases from 0, scales from 1. An embedding may be given its start values instead, and the normal
distribution of a weight need not be truncated.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import paddle
from paddle import nn
from paddle.nn import functional as F
from paddle.nn.initializer import Assign, Constant, Initializer, Normal, TruncatedNormal

from ernie_gram.distributed.device import on_cpu
from ernie_gram.graph.compute import float32, for_product


def ones_column(rows: paddle.Tensor) -> paddle.Tensor | None:
    """Return a one for each row of `rows`, float32 [..., 1], for `linear` on a CPU; None on a GPU."""
    return paddle.ones_like(rows[..., :1]) if on_cpu() else None


def linear(
    x: paddle.Tensor, weight: paddle.Tensor, bias: paddle.Tensor, ones: paddle.Tensor | None = None
) -> paddle.Tensor:
    """Return x W + b for x [..., in], W [in, out] and b [out], in the precision of products.

    In float32 on a CPU the bias is added as the product ones [..., 1] x b [1, out]. This is for speed only: there, the
    gradient of a broadcasting addition takes several times as long as the product before it, while the gradient of a
    product is again a product. `ones` is the result of `ones_column`, if the caller has it already.
    """
    x, weight, bias = (for_product(value) for value in (x, weight, bias))
    if not on_cpu() or x.dtype != paddle.float32:
        return F.linear(x, weight, bias)
    ones = ones_column(x) if ones is None else ones
    return paddle.matmul(x, weight) + paddle.matmul(ones, bias.unsqueeze(0))


def dropout(x: paddle.Tensor, rate: float, training: bool) -> paddle.Tensor:
    """Return x with dropout while training, otherwise x itself: Paddle's operation would make a copy of it."""
    return F.dropout(x, rate) if training else x


def truncated_normal(std: float) -> Initializer:
    """Return a normal truncated at two standard deviations; Paddle's bounds are absolute, not multiples of `std`."""
    return TruncatedNormal(std=std, a=-2 * std, b=2 * std)


class _Named(nn.Layer):
    """A layer whose parameters have explicit names, so that all programs share the same parameters."""

    def parameter(self, name: str, shape: list[int], initializer: Initializer) -> paddle.Tensor:
        return self.create_parameter(shape, attr=paddle.ParamAttr(name=name, initializer=initializer))


class Linear(_Named):
    """x W + b for x [..., in] (see `linear`), with parameters `{name}.w_0` [in, out] and `{name}.b_0` [out].

    W is drawn from a normal with the standard deviation `initializer_range`, truncated at two of them if `truncated`.
    `weight` and `bias` replace the two names where upstream's are irregular.
    """

    def __init__(
        self,
        name: str,
        size_in: int,
        size_out: int,
        initializer_range: float,
        weight: str | None = None,
        bias: str | None = None,
        truncated: bool = True,
    ) -> None:
        super().__init__()
        start = truncated_normal(initializer_range) if truncated else Normal(std=initializer_range)
        self.weight = self.parameter(weight or f"{name}.w_0", [size_in, size_out], start)
        self.bias = self.parameter(bias or f"{name}.b_0", [size_out], Constant(0.0))

    def forward(self, x: paddle.Tensor, ones: paddle.Tensor | None = None) -> paddle.Tensor:
        return linear(x, self.weight, self.bias, ones)


class LayerNorm(_Named):
    """Normalisation over the last axis, in float32, with parameters `{name}_scale` and `{name}_bias`.

    `epsilon` is added to the variance.
    """

    def __init__(self, name: str, size: int, epsilon: float) -> None:
        super().__init__()
        self.size, self.epsilon = size, epsilon
        self.scale = self.parameter(f"{name}_scale", [size], Constant(1.0))
        self.bias = self.parameter(f"{name}_bias", [size], Constant(0.0))

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        return F.layer_norm(float32(x), [self.size], self.scale, self.bias, self.epsilon)


class Embedding(_Named):
    """A table of `rows` vectors of `size` numbers, with the parameter `name`.

    `start_values`, float32 [rows, size], replace the truncated normal; then no random numbers are drawn.
    """

    def __init__(
        self,
        name: str,
        rows: int,
        size: int,
        initializer_range: float,
        start_values: npt.NDArray[np.float32] | None = None,
    ) -> None:
        super().__init__()
        self.rows, self.size = rows, size
        start = truncated_normal(initializer_range) if start_values is None else Assign(start_values)
        self.weight = self.parameter(name, [rows, size], start)

    def forward(self, ids: paddle.Tensor) -> paddle.Tensor:
        return F.embedding(ids, self.weight)


class Bias(_Named):
    """A vector of `size` numbers that starts from 0, with the parameter `name`."""

    def __init__(self, name: str, size: int) -> None:
        super().__init__()
        self.value = self.parameter(name, [size], Constant(0.0))
