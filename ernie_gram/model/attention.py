"""Multi-head attention with an additive bias (equation 4), and the bias: relative position and padding.

Context slots attend to the context; query rows attend to the context and to themselves. The relative position bias is
one learned number per head and distance bucket.

Shape letters: B sequences, L slots, K query rows per sequence, H hidden, A heads, D = H / A, R = 33 buckets. For rows
without padding (encoder.PackedRows) read B as 1, and L as the number of rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import paddle
from paddle import nn
from paddle.nn import functional as F

from ernie_gram.graph import for_product
from ernie_gram.kernels import operations
from ernie_gram.model.config import NUM_BUCKETS, ModelConfig
from ernie_gram.model.exact_relative_position import (
    DISTANCE_BOUNDS,
    KEY_BEFORE_QUERY,
    KEY_IS_CLS,
    MASKED_SCORE,
    QUERY_IS_CLS,
)
from ernie_gram.model.layers import Embedding, Linear, dropout, linear
from ernie_gram.model.parameters import LayerParameters


@dataclass(frozen=True)
class Stream:
    """What all layers share about rows that pass through the encoder together: the context, or the query rows.

    Attributes:
        bias: added to the scores of these rows for the context's keys; broadcasts to [B, A, length, L], where length is
            L for the context and K for query rows. With `starts` only the relative bias, [1, A, L, L], or None.
        self_bias: added to a query row's score for itself; broadcasts to [B, A, K, 1]. None for the context, whose rows
            are among the keys already. With `starts` [A], or None.
        starts: the first row of each sequence's context, and the number of rows, int64 [B + 1]; for fused attention on
            a CPU (see graph.fuses_attention).
        slots: with `starts`, the slots of query rows, int64 [B, K].
    """

    bias: paddle.Tensor | None
    self_bias: paddle.Tensor | None = None
    starts: paddle.Tensor | None = None
    slots: paddle.Tensor | None = None


@dataclass(frozen=True)
class Projected:
    """Queries, keys and values of a stream's rows, together [B, length, 3 H]."""

    together: paddle.Tensor
    heads: int

    @cached_property
    def by_head(self) -> list[paddle.Tensor]:
        """Queries, keys and values, [B, A, length, D] each."""
        # A 0 stands for the size of the same axis. A shape that is a tensor would be copied from a GPU to the host.
        size = self.together.shape[-1] // (3 * self.heads)
        return paddle.unbind(self.together.reshape([0, 0, 3, self.heads, size]).transpose([2, 0, 3, 1, 4]))


def padding_bias(lengths_B: paddle.Tensor, length: paddle.Tensor) -> paddle.Tensor:
    """Return 0 for the keys within each sequence's length and MASKED_SCORE for padding, float32 [B, 1, 1, L]."""
    is_padding = paddle.arange(length).unsqueeze(0) >= lengths_B.unsqueeze(1)
    return (is_padding.astype("float32") * MASKED_SCORE).unsqueeze([1, 2])


def relative_buckets(length: paddle.Tensor) -> paddle.Tensor:
    """Return the bucket of key slot j for query slot i, int64 [L, L] indexed [i, j].

    With n = j - i the bucket is 16 [n < 0] + g(|n|). Then key 0 ([CLS]) gets 32 for every query, and query 0 gets 16
    for every key, itself included. The sign is opposite to T5's.
    """
    slots_L = paddle.arange(length)
    query_L1, key_1L = slots_L.unsqueeze(1), slots_L.unsqueeze(0)
    n_LL = key_1L - query_L1
    # A table from distance to bucket: ONNX has no operator that searches.
    distances = np.arange(DISTANCE_BOUNDS[-1] + 1)
    table = paddle.assign(np.searchsorted(DISTANCE_BOUNDS, distances, side="right").astype(np.int64))
    distances_LL = n_LL.abs().clip(max=DISTANCE_BOUNDS[-1])
    buckets_LL = paddle.gather(table, distances_LL.flatten()).reshape([length, length])
    buckets_LL = buckets_LL + KEY_BEFORE_QUERY * (n_LL < 0).astype("int64")
    buckets_LL = paddle.where(key_1L == 0, paddle.full_like(buckets_LL, KEY_IS_CLS), buckets_LL)
    return paddle.where(query_L1 == 0, paddle.full_like(buckets_LL, QUERY_IS_CLS), buckets_LL)


def relative_bias(table_RA: Embedding, length: paddle.Tensor) -> paddle.Tensor:
    """Return the bias of every pair of slots, [A, L, L], from the table `rel_pos_embedding` [33, A].

    It is a product with one-hot rows instead of a look-up: the gradient of the product is again a product, while the
    gradient of a look-up would add L * L rows to 33 rows one by one.
    """
    one_hot = F.one_hot(relative_buckets(length).flatten(), NUM_BUCKETS)
    # Always float32. Moreover, Paddle's bfloat16 product crashes if one factor needs no gradient.
    bias = paddle.matmul(table_RA.weight, one_hot, transpose_x=True, transpose_y=True)
    return bias.reshape([table_RA.weight.shape[1], length, length])


def bias_rows(bias_ALL: paddle.Tensor, slots_BK: paddle.Tensor) -> paddle.Tensor:
    """Return the rows of `relative_bias` for query rows at the given slots, [B, A, K, L]."""
    heads, length = bias_ALL.shape[0], paddle.shape(bias_ALL)[2]
    rows_LAL = bias_ALL.transpose([1, 0, 2])
    selected = paddle.gather(rows_LAL, slots_BK.flatten())
    return selected.reshape([-1, paddle.shape(slots_BK)[1], heads, length]).transpose([0, 2, 1, 3])


class Attention(nn.Layer):
    """softmax(Q K^T / sqrt(D) + bias) V for each head; `output` is the projection after it (equation 4).

    The context's keys and values are computed once, for its own rows and for the query rows. The two kinds of rows are
    never in the same matrix product, so that query rows cannot change the context, not even in the last bit.

    It is composed of single operations, unless graph.fuses_attention says otherwise. In Paddle 3.3.1, the backward pass
    of flash attention, which scaled_dot_product_attention prefers on a GPU, returns no gradient of the bias, and the
    bias is learned here.
    """

    def __init__(self, declared: LayerParameters, config: ModelConfig) -> None:
        super().__init__()
        self.heads, self.size = config.num_attention_heads, config.hidden_size // config.num_attention_heads
        self.scale = self.size**-0.5
        self.dropout = config.attention_probs_dropout_prob
        self.query, self.key, self.value, self.output = (
            Linear(part) for part in (declared.query, declared.key, declared.value, declared.output)
        )

    def extra_repr(self) -> str:
        return f"{self.heads} heads of {self.size}"

    def joined(self) -> tuple[paddle.Tensor, paddle.Tensor]:
        """Return the weights [H, 3 H] and the biases [3 H] of queries, keys and values, for one product."""
        parts = (self.query, self.key, self.value)
        return paddle.concat([part.weight for part in parts], 1), paddle.concat([part.bias for part in parts])

    def project(self, rows: paddle.Tensor, joined: tuple[paddle.Tensor, paddle.Tensor]) -> Projected:
        """Return the queries, keys and values of rows, [B, length, H]; `joined` is the result of `self.joined`."""
        return Projected(linear(rows, *joined), self.heads)

    def forward(self, own: Projected, context: Projected, stream: Stream) -> paddle.Tensor:
        """Return the attention of a stream's rows to the context's, [B, length, H], before the output projection.

        Args:
            own: of the stream's rows.
            context: of the context's rows.
            stream: its `self_bias` decides whether each row also attends to itself.
        """
        if stream.starts is not None:
            return self._fused(own, context, stream)
        # The queries have L * D numbers per head, the scores L * L: scaling the queries is cheaper.
        query, values = own.by_head[0] * self.scale, context.by_head[2]
        scores = self._scores(query, context, stream)
        if stream.self_bias is None:
            attended = paddle.matmul(self._weights(scores), values)
        else:
            _, own_key, own_value = own.by_head
            own_scores = (query * own_key).sum(-1, keepdim=True) + for_product(stream.self_bias)
            weights = self._weights(paddle.concat([scores, own_scores], axis=-1))
            attended = paddle.matmul(weights[..., :-1], values) + weights[..., -1:] * own_value
        return attended.transpose([0, 2, 1, 3]).reshape([0, 0, self.heads * self.size])

    def context_weights(self, own: Projected, context: Projected, stream: Stream) -> paddle.Tensor:
        """Return the weight of each of the context's keys for each of its rows, [B, A, L, L], without dropout.

        The weights of a row add up to 1. Args: as for `forward`; the stream is the context.
        """
        return F.softmax(self._scores(own.by_head[0] * self.scale, context, stream))

    def _scores(self, query: paddle.Tensor, context: Projected, stream: Stream) -> paddle.Tensor:
        assert stream.bias is not None
        return paddle.matmul(query, context.by_head[1], transpose_y=True) + for_product(stream.bias)

    def _fused(self, own: Projected, context: Projected, stream: Stream) -> paddle.Tensor:
        queries = None if stream.slots is None else own.together
        biases = (stream.bias, stream.self_bias)
        given = operations.Attending(context.together, queries, *biases, stream.starts, stream.slots)
        if self.training:
            return operations.attention_with_gradient(given, self.heads, self.dropout)
        return operations.attention(given, None, self.heads, 0.0)[0]

    def _weights(self, scores: paddle.Tensor) -> paddle.Tensor:
        # For scores in half precision, Paddle's GPU kernel computes in float32.
        return dropout(F.softmax(scores), self.dropout, self.training)
