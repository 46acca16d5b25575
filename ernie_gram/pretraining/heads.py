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


class PredictionHead(nn.Layer):
    """gelu(H W) times an output table, plus a bias: low-rank, or tied to the embeddings.

    A low-rank head has a table [C, O], and O = out_emb_size is far smaller than H. The transform with prefix "mask_lm"
    is the one in upstream's released weights (`mask_lm_trans_fc`, O = 128).

    A tied head is LayerNorm(gelu(H W)) times the embeddings themselves: the paper's W in R^(h x C). The classes after
    the tokens are the rows of `ngrams`.

    Args:
        declared: its parameters; those of a tied head have a LayerNorm.
        tokens, num_tokens, ngrams: for a tied head, the token embedding, the number of its rows that are classes, and
            the n-gram embedding.
        table: for a low-rank head without a table of its own, that of another head.
    """

    def __init__(
        self,
        declared: HeadParameters,
        config: ModelConfig,
        tokens: Embedding,
        num_tokens: int,
        ngrams: Embedding | None = None,
        table: Embedding | None = None,
    ) -> None:
        super().__init__()
        norm = declared.transform.norm
        self.transform, self.act = Linear(declared.transform.linear), config.hidden_act
        self.norm = None if norm is None else LayerNorm(norm, config.layer_norm_eps)
        self.table = embedding(declared.table, table) if norm is None else None
        self.tokens, self.num_tokens, self.ngrams = tokens, num_tokens, ngrams
        self.bias = Bias(declared.bias)

    def forward(self, hidden_MH: paddle.Tensor) -> LazyLogits:
        """Return logits over C classes."""
        transformed = activation(self.act, self.transform(hidden_MH))
        if self.norm is None:
            assert self.table is not None
            return LazyLogits(transformed, self.table.weight, self.bias.value)
        x_ME = self.norm(transformed)
        # The token embedding may have more rows than the vocabulary has tokens; they are no classes.
        table_CE = self.tokens.weight[: self.num_tokens]
        if self.ngrams is not None:
            table_CE = paddle.concat([table_CE, self.ngrams.weight])
        return LazyLogits(x_ME, table_CE, self.bias.value)
