"""Multi-head self-attention with an additive bias.

Shape letters: B sequences, L slots, N = B * L, H hidden, A heads, D = H / A.
"""

from __future__ import annotations

import paddle
from paddle import nn
from paddle.nn import functional as F

from ernie_gram.layers import Linear

# Added to the score of a key that is padding, as upstream does: its weight is then 0, or (Paddle's softmax on a CPU
# clips at exp(-64)) too small to change a float32 sum.
MASKED_SCORE = -1e4


def padding_bias(lengths_B: paddle.Tensor, length: paddle.Tensor) -> paddle.Tensor:
    """0 for keys below each sequence's length, MASKED_SCORE behind it; float32 [B, 1, 1, L]."""
    is_padding = paddle.arange(length).unsqueeze(0) >= lengths_B.unsqueeze(1)
    return (is_padding.astype("float32") * MASKED_SCORE).unsqueeze([1, 2])


class SelfAttention(nn.Layer):
    """softmax(Q K^T / sqrt(D) + bias) V over heads, then the output projection."""

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

    def forward(self, hidden_NH: paddle.Tensor, length: paddle.Tensor, bias_BALL: paddle.Tensor) -> paddle.Tensor:
        """hidden: [N, H], slot l of sequence b in row b * L + l; length: L; bias: broadcasts to [B, A, L, L],
        indexed [query, key]. Returns [N, H]."""
        # Scaling the queries touches L * D numbers a head, scaling the scores L * L.
        query_BALD = self._heads(self.query(hidden_NH) * self.scale, length)
        key_BALD = self._heads(self.key(hidden_NH), length)
        value_BALD = self._heads(self.value(hidden_NH), length)
        scores_BALL = paddle.matmul(query_BALD, key_BALD, transpose_y=True) + bias_BALL
        weights_BALL = F.dropout(F.softmax(scores_BALL), self.dropout, training=self.training)
        context_BLAD = paddle.matmul(weights_BALL, value_BALD).transpose([0, 2, 1, 3])
        return self.output(context_BLAD.reshape([-1, self.hidden_size]))

    def _heads(self, x_NH: paddle.Tensor, length: paddle.Tensor) -> paddle.Tensor:
        return x_NH.reshape([-1, length, self.heads, self.hidden_size // self.heads]).transpose([0, 2, 1, 3])
