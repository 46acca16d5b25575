"""Prediction heads: from the encoder's output at chosen rows to scores over classes.

Shape letters: M predicted rows, H hidden, E embedding size, O output size, C classes.
"""

from __future__ import annotations

import paddle
from paddle import nn

from ernie_gram.model.config import ModelConfig
from ernie_gram.model.encoder import activation
from ernie_gram.model.layers import Bias, LayerNorm, Linear, Table
from ernie_gram.pretraining.chunked_softmax import Scores


class LowRankHead(nn.Layer):
    """gelu(H W) against an output table [C, O], plus a bias: O = out_emb_size is far below H.

    The transform of prefix "mask_lm" is the one upstream's released weights hold (`mask_lm_trans_fc`, O = 128).
    Without a `table` to share it has its own.
    """

    def __init__(self, prefix: str, config: ModelConfig, classes: int, table: Table | None = None) -> None:
        super().__init__()
        size, spread = config.out_emb_size, config.initializer_range
        self.transform = Linear(f"{prefix}_trans_fc", config.hidden_size, size, spread)
        self.table = table or Table(f"{prefix}_out_embedding", classes, size, spread)
        self.bias = Bias(f"{prefix}_out_fc.b_0", classes)
        self.act = config.hidden_act

    def forward(self, hidden_MH: paddle.Tensor) -> Scores:
        """Scores over C classes."""
        return Scores(activation(self.act, self.transform(hidden_MH)), self.table.weight, self.bias.value)


class TiedHead(nn.Layer):
    """LayerNorm(gelu(H W)) against the embeddings themselves, plus a bias: the paper's W in R^(h x C).

    Classes beyond the tokens are the rows of `ngrams`.
    """

    def __init__(self, prefix: str, config: ModelConfig, tokens: Table, num_tokens: int, ngrams: Table | None) -> None:
        super().__init__()
        self.transform = Linear(f"{prefix}_trans_fc", config.hidden_size, tokens.size, config.initializer_range)
        self.norm = LayerNorm(f"{prefix}_trans_layer_norm", tokens.size)
        self.tokens, self.num_tokens, self.ngrams = tokens, num_tokens, ngrams
        self.bias = Bias(f"{prefix}_out_fc.b_0", num_tokens + (ngrams.rows if ngrams else 0))
        self.act = config.hidden_act

    def forward(self, hidden_MH: paddle.Tensor) -> Scores:
        """Scores over C classes."""
        x_ME = self.norm(activation(self.act, self.transform(hidden_MH)))
        # The token table may be padded beyond the vocabulary; no class belongs to those rows.
        table_CE = self.tokens.weight[: self.num_tokens]
        if self.ngrams is not None:
            table_CE = paddle.concat([table_CE, self.ngrams.weight])
        return Scores(x_ME, table_CE, self.bias.value)


class DetectionHead(nn.Layer):
    """One score a row: was it replaced? gelu(H W) w + b (choice: ELECTRA's)."""

    def __init__(self, prefix: str, config: ModelConfig) -> None:
        super().__init__()
        size, spread = config.hidden_size, config.initializer_range
        self.transform = Linear(f"{prefix}_trans_fc", size, size, spread)
        self.output = Linear(f"{prefix}_out_fc", size, 1, spread)
        self.act = config.hidden_act

    def forward(self, hidden_NH: paddle.Tensor) -> paddle.Tensor:
        """Logits of "replaced", [N]."""
        return self.output(activation(self.act, self.transform(hidden_NH))).flatten()
