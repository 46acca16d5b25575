"""Prediction heads: from the encoder's output at chosen slots to scores over classes.

Shape letters: M predicted slots, H hidden, E embedding size, O output size, C classes.
"""

from __future__ import annotations

import paddle
from paddle import nn

from ernie_gram.config import ModelConfig
from ernie_gram.encoder import activation
from ernie_gram.layers import Bias, LayerNorm, Linear, Table, add_bias


class LowRankHead(nn.Layer):
    """gelu(H W) against an output table of its own, [C, O], plus a bias: O = out_emb_size is far below H.

    The transform of prefix "mask_lm" is the one upstream's released weights hold (`mask_lm_trans_fc`, O = 128).
    """

    def __init__(self, prefix: str, config: ModelConfig, classes: int) -> None:
        super().__init__()
        size = config.out_emb_size
        self.transform = Linear(f"{prefix}_trans_fc", config.hidden_size, size, config.initializer_range)
        self.table = Table(f"{prefix}_out_embedding", classes, size, config.initializer_range)
        self.bias = Bias(f"{prefix}_out_fc.b_0", classes)
        self.act = config.hidden_act

    def forward(self, hidden_MH: paddle.Tensor) -> paddle.Tensor:
        """Scores, [M, C]."""
        x_MO = activation(self.act, self.transform(hidden_MH))
        return add_bias(paddle.matmul(x_MO, self.table.weight, transpose_y=True), self.bias.value)


class TiedHead(nn.Layer):
    """LayerNorm(gelu(H W)) against the embeddings themselves, plus a bias: the paper's W in R^(h x C).

    Classes beyond the tokens are the rows of `ngram_embedding`.
    """

    def __init__(self, prefix: str, config: ModelConfig, tokens: Table, num_tokens: int, ngrams: Table | None) -> None:
        super().__init__()
        size = config.embedding_size
        self.transform = Linear(f"{prefix}_trans_fc", config.hidden_size, size, config.initializer_range)
        self.norm = LayerNorm(f"{prefix}_trans_layer_norm", size)
        self.tokens, self.num_tokens, self.ngrams = tokens, num_tokens, ngrams
        classes = num_tokens + (ngrams.weight.shape[0] if ngrams is not None else 0)
        self.bias = Bias(f"{prefix}_out_fc.b_0", classes)
        self.act = config.hidden_act

    def forward(self, hidden_MH: paddle.Tensor) -> paddle.Tensor:
        """Scores, [M, C]."""
        x_ME = self.norm(activation(self.act, self.transform(hidden_MH)))
        # The token table may be padded beyond the vocabulary; no class belongs to those rows.
        scores = paddle.matmul(x_ME, self.tokens.weight[: self.num_tokens], transpose_y=True)
        if self.ngrams is not None:
            scores = paddle.concat([scores, paddle.matmul(x_ME, self.ngrams.weight, transpose_y=True)], axis=1)
        return add_bias(scores, self.bias.value)
