"""Multi-head attention with an additive bias. Context slots attend to the context; query rows attend to the context
and to themselves.

Shape letters: B sequences, L slots, N = B * L, K query rows per sequence, R = B * K, H hidden, A heads, D = H / A.
"""

from __future__ import annotations

from dataclasses import dataclass

import paddle
from paddle import nn
from paddle.nn import functional as F

from ernie_gram.model.layers import Linear, dropout

# Added to the scores of padding keys, as upstream does. The resulting weight is 0, or too small to change a float32 sum
# (Paddle's softmax on a CPU clips at exp(-64)).
MASKED_SCORE = -1e4


@dataclass(frozen=True)
class Stream:
    """Rows that pass through the encoder together: the context, or the query rows (as in two-stream attention).

    It also holds what depends on the stream's size only. These tensors are computed once for all layers, because the
    time that Paddle's executor needs before the first step grows with the square of the number of operations.

    Attributes:
        by_head: int64 [4], the shape of rows split into heads: [-1, length, A, D], where length is L for the context
            and K for query rows.
        ones: a one for each row, [B * length, 1], for adding biases (see layers.add_bias).
        bias: added to the scores of these rows for the context's keys; broadcasts to [B, A, length, L].
        self_bias: added to a query row's score for itself; broadcasts to [B, A, K, 1]. None for the context, whose rows
            are among the keys already.
    """

    by_head: paddle.Tensor
    ones: paddle.Tensor
    bias: paddle.Tensor
    self_bias: paddle.Tensor | None = None


def padding_bias(lengths_B: paddle.Tensor, length: paddle.Tensor) -> paddle.Tensor:
    """Return 0 for the keys within each sequence's length and MASKED_SCORE for padding, float32 [B, 1, 1, L]."""
    is_padding = paddle.arange(length).unsqueeze(0) >= lengths_B.unsqueeze(1)
    return (is_padding.astype("float32") * MASKED_SCORE).unsqueeze([1, 2])


def shape_by_head(length: paddle.Tensor, heads: int, size: int) -> paddle.Tensor:
    """Return [-1, length, heads, size], int64 [4]."""
    return paddle.concat([paddle.to_tensor([-1]), length.reshape([1]).astype("int64"), paddle.to_tensor([heads, size])])


class Attention(nn.Layer):
    """softmax(Q K^T / sqrt(D) + bias) V for each head, then the output projection (equation 4).

    The context's keys and values are computed once, for its own rows and for the query rows. The two kinds of rows are
    never in the same matrix product, so that query rows cannot change the context, not even in the last bit.

    It is composed of single operations on every device. In Paddle 3.3.1, the backward pass of flash attention, which
    scaled_dot_product_attention prefers on a GPU, returns no gradient of the bias, and the bias is learned here.
    """

    def __init__(self, name: str, hidden_size: int, heads: int, dropout: float, initializer_range: float) -> None:
        super().__init__()
        self.heads = heads
        self.hidden_size = hidden_size
        self.scale = (hidden_size // heads) ** -0.5
        self.dropout = dropout
        self.query, self.key, self.value, self.output = (
            Linear(f"{name}_multi_head_att_{part}_fc", hidden_size, hidden_size, initializer_range)
            for part in ("query", "key", "value", "output")
        )

    def keys_and_values(self, rows_NH: paddle.Tensor, stream: Stream) -> tuple[paddle.Tensor, paddle.Tensor]:
        """Return the keys and the values of a stream's rows, [B, A, length, D] each."""
        key_NH, value_NH = self.key(rows_NH, stream.ones), self.value(rows_NH, stream.ones)
        return self._split_heads(key_NH, stream), self._split_heads(value_NH, stream)

    def forward(
        self, rows: paddle.Tensor, stream: Stream, context: tuple[paddle.Tensor, paddle.Tensor]
    ) -> paddle.Tensor:
        """Return the attention of a stream's rows, [B * length, H].

        Args:
            rows: [B * length, H].
            stream: its `self_bias` decides whether each row also attends to itself.
            context: keys and values of the context, [B, A, L, D] each.
        """
        key_BALD, value_BALD = context
        # The queries have L * D numbers per head, the scores L * L: scaling the queries is cheaper.
        query = self._split_heads(self.query(rows, stream.ones) * self.scale, stream)
        scores = paddle.matmul(query, key_BALD, transpose_y=True) + stream.bias
        if stream.self_bias is None:
            attended = paddle.matmul(self._weights(scores), value_BALD)
        else:
            own_key, own_value = self.keys_and_values(rows, stream)
            own_scores = (query * own_key).sum(-1, keepdim=True) + stream.self_bias
            weights = self._weights(paddle.concat([scores, own_scores], axis=-1))
            length = paddle.shape(key_BALD)[2]
            attended = paddle.matmul(weights[..., :length], value_BALD) + weights[..., length:] * own_value
        return self.output(attended.transpose([0, 2, 1, 3]).reshape([-1, self.hidden_size]), stream.ones)

    def _weights(self, scores: paddle.Tensor) -> paddle.Tensor:
        return dropout(F.softmax(scores), self.dropout, self.training)

    def _split_heads(self, rows: paddle.Tensor, stream: Stream) -> paddle.Tensor:
        return paddle.reshape(rows, stream.by_head).transpose([0, 2, 1, 3])
