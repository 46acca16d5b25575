"""Prediction heads: from the encoder's output at selected rows to logits over classes.

Shape letters: M predicted rows, H hidden, E embedding size, O output size, C classes.
"""

from __future__ import annotations

import paddle
from paddle import nn

from ernie_gram.model.config import ModelConfig
from ernie_gram.model.encoder import activation
from ernie_gram.model.layers import Bias, Embedding, LayerNorm, Linear, embedding
from ernie_gram.model.parameters import HeadParameters
from ernie_gram.pretraining.chunked_softmax import LazyLogits


class LowRankHead(nn.Layer):
    """gelu(H W) times an output table [C, O], plus a bias; O = out_emb_size is far smaller than H.

    The transform with prefix "mask_lm" is the one in upstream's released weights (`mask_lm_trans_fc`, O = 128).
    The head reads the given table if it has none of its own.
    """

    def __init__(self, declared: HeadParameters, config: ModelConfig, table: Embedding | None = None) -> None:
        super().__init__()
        self.transform = Linear(declared.transform.linear)
        self.table = embedding(declared.table, table)
        self.bias = Bias(declared.bias)
        self.act = config.hidden_act

    def forward(self, hidden_MH: paddle.Tensor) -> LazyLogits:
        """Return logits over C classes."""
        return LazyLogits(activation(self.act, self.transform(hidden_MH)), self.table.weight, self.bias.value)


class TiedHead(nn.Layer):
    """LayerNorm(gelu(H W)) times the embeddings themselves, plus a bias: the paper's W in R^(h x C).

    The classes after the tokens are the rows of `ngrams`.
    """

    def __init__(
        self,
        declared: HeadParameters,
        config: ModelConfig,
        tokens: Embedding,
        num_tokens: int,
        ngrams: Embedding | None,
    ) -> None:
        super().__init__()
        self.transform = Linear(declared.transform.linear)
        assert declared.transform.norm is not None
        self.norm = LayerNorm(declared.transform.norm, config.layer_norm_eps)
        self.tokens, self.num_tokens, self.ngrams = tokens, num_tokens, ngrams
        self.bias = Bias(declared.bias)
        self.act = config.hidden_act

    def forward(self, hidden_MH: paddle.Tensor) -> LazyLogits:
        """Return logits over C classes."""
        x_ME = self.norm(activation(self.act, self.transform(hidden_MH)))
        # The token embedding may have more rows than the vocabulary has tokens; they are no classes.
        table_CE = self.tokens.weight[: self.num_tokens]
        if self.ngrams is not None:
            table_CE = paddle.concat([table_CE, self.ngrams.weight])
        return LazyLogits(x_ME, table_CE, self.bias.value)


def prediction_head(
    declared: HeadParameters,
    config: ModelConfig,
    tokens: Embedding,
    num_tokens: int,
    ngrams: Embedding | None = None,
    table: Embedding | None = None,
) -> nn.Layer:
    """Return a head of the kind that `config` asks for.

    Args:
        tokens, num_tokens, ngrams: see TiedHead.
        table: see LowRankHead.
    """
    if config.out_emb_size:
        return LowRankHead(declared, config, table)
    return TiedHead(declared, config, tokens, num_tokens, ngrams)
