"""The pooler: one vector for a whole sequence, for fine-tuning and inference. Pre-training does not train it.

Shape letters: B sequences, L slots, N = B * L, H hidden.
"""

from __future__ import annotations

import paddle
from paddle import nn
from paddle.nn import functional as F

from ernie_gram.model import parameters
from ernie_gram.model.config import ModelConfig
from ernie_gram.model.layers import Linear


class Pooler(nn.Layer):
    """tanh(h W + b) of the encoder's output h for [CLS], as in BERT."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.hidden_size = config.hidden_size
        self.transform = Linear(parameters.pooler(config))

    def forward(self, context_NH: paddle.Tensor, length: paddle.Tensor) -> paddle.Tensor:
        """Return [B, H] for the encoder's context rows, [N, H], of sequences with `length` slots (L) each."""
        return F.tanh(self.transform(context_NH.reshape([-1, length, self.hidden_size])[:, 0]))
