"""Multi-head attention with an additive bias (equation 4), and the bias: relative position and padding.

Context slots attend to the context; query rows attend to the context and to themselves. The relative position bias is
one learned number per head and distance bucket.

Shape letters: B sequences, L slots, K query rows per sequence, H hidden, A heads, D = H / A, R = 33 buckets.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import paddle
from paddle import nn
from paddle.nn import functional as F

from ernie_gram.graph import for_product
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
class Shared:
    """What all layers read besides the rows, [B, length, H]: those of the context, then query rows, if there are any.

    Attributes:
        bias: added to the scores of the context's rows for its keys; broadcasts to [B, A, L, L].
        query_bias: the same for query rows; broadcasts to [B, A, K, L]. None without query rows.
        self_bias: added to a query row's score for itself; broadcasts to [B, A, K, 1].
        sizes: the number of the context's rows in a sequence, and that of query rows, scalars; () without query rows.
    """

    bias: paddle.Tensor
    query_bias: paddle.Tensor | None = None
    self_bias: paddle.Tensor | None = None
    sizes: tuple[paddle.Tensor, ...] = ()


def split(rows: paddle.Tensor, sizes: tuple[paddle.Tensor, ...]) -> tuple[paddle.Tensor, paddle.Tensor | None]:
    """Return the context's rows of [B, length, n], and query rows, if there are sizes."""
    if not sizes:
        return rows, None
    # Paddle forgets the last size where the others are not known.
    context, queries = (part.reshape([0, 0, rows.shape[-1]]) for part in paddle.split(rows, list(sizes), axis=1))
    return context, queries


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

    The context's rows and query rows share the products by weights, and all attend to the context's keys and values. A
    row of the context reads nothing of a query row.

    It is composed of single operations. In Paddle 3.3.1, the backward pass of flash attention, which
    scaled_dot_product_attention prefers on a GPU, returns no gradient of the bias, and the bias is learned here.
    """

    def __init__(self, declared: LayerParameters, config: ModelConfig) -> None:
        super().__init__()
        self.heads, self.size = config.num_attention_heads, config.hidden_size // config.num_attention_heads
        self.scale = self.size**-0.5
        self.dropout = config.attention_probs_dropout_prob
        self.query, self.key, self.value, self.output = (
            Linear(part) for part in (declared.query, declared.key, declared.value, declared.output)
        )

    def forward(self, rows: paddle.Tensor, shared: Shared) -> paddle.Tensor:
        """Return the attention of rows, [B, length, H], to the context and of query rows to themselves too.

        It has the shape of the rows, before the output projection.
        """
        context, own = split(self._projected(rows), shared.sizes)
        query, key, value = self._by_head(context)
        attended = self._joined(paddle.matmul(self._weights(self._scores(query, key, shared.bias)), value))
        if own is None:
            return attended
        own_query, own_key, own_value = self._by_head(own)
        assert shared.query_bias is not None
        assert shared.self_bias is not None
        own_scores = (own_query * own_key).sum(-1, keepdim=True) + for_product(shared.self_bias)
        scores = self._scores(own_query, key, shared.query_bias)
        weights = self._weights(paddle.concat([scores, own_scores], axis=-1))
        of_queries = paddle.matmul(weights[..., :-1], value) + weights[..., -1:] * own_value
        return paddle.concat([attended, self._joined(of_queries)], 1)

    def context_weights(self, rows: paddle.Tensor, shared: Shared) -> paddle.Tensor:
        """Return the weight of each of the context's keys for each of its rows, [B, A, L, L], without dropout.

        The weights of a row add up to 1. Args: as for `forward`; there are no query rows.
        """
        query, key, _ = self._by_head(self._projected(rows))
        return F.softmax(self._scores(query, key, shared.bias))

    def _projected(self, rows: paddle.Tensor) -> paddle.Tensor:
        """Return the queries, keys and values of rows, together [B, length, 3 H], by one product."""
        parts = (self.query, self.key, self.value)
        return linear(rows, paddle.concat([part.weight for part in parts], 1), paddle.concat([p.bias for p in parts]))

    def _by_head(self, projected: paddle.Tensor) -> list[paddle.Tensor]:
        """Return queries, keys and values, [B, A, length, D] each, and the queries scaled."""
        # A 0 stands for the size of the same axis. A shape that is a tensor would be copied from a GPU to the host.
        query, key, value = paddle.unbind(
            projected.reshape([0, 0, 3, self.heads, self.size]).transpose([2, 0, 3, 1, 4])
        )
        # The queries have L * D numbers per head, the scores L * L: scaling the queries is cheaper.
        return [query * self.scale, key, value]

    def _joined(self, attended: paddle.Tensor) -> paddle.Tensor:
        """Return the numbers of all heads, [B, A, length, D], together, [B, length, H]."""
        return attended.transpose([0, 2, 1, 3]).reshape([0, 0, self.heads * self.size])

    def _scores(self, query: paddle.Tensor, key: paddle.Tensor, bias: paddle.Tensor) -> paddle.Tensor:
        return paddle.matmul(query, key, transpose_y=True) + for_product(bias)

    def _weights(self, scores: paddle.Tensor) -> paddle.Tensor:
        # For scores in half precision, Paddle's GPU kernel computes in float32.
        return dropout(F.softmax(scores), self.dropout, self.training)
