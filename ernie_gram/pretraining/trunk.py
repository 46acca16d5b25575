"""The part of the network that all terms share: the encoder, the head over masked slots, and the n-gram embedding.

Shape letters: M predicted rows, E embedding size, H hidden, O output size, F tokens, C = F + number of n-grams.
"""

from __future__ import annotations

from dataclasses import dataclass

import paddle
from paddle import nn

from ernie_gram.model import parameters
from ernie_gram.model.config import ModelConfig
from ernie_gram.model.encoder import Encoder, Replacement, activation
from ernie_gram.model.layers import Bias, Embedding, LayerNorm, Linear, embedding, optional
from ernie_gram.model.parameters import EncoderParameters, HeadParameters, Parameter
from ernie_gram.pretraining.chunked_softmax import LazyLogits
from ernie_gram.pretraining.config import PretrainConfig
from ernie_gram.pretraining.sizes import CorpusSizes


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
        norm = declared.norm
        self.transform, self.act = Linear(declared.transform), config.hidden_act
        self.norm = None if norm is None else LayerNorm(norm, config.layer_norm_eps)
        self.table = embedding(declared.table, table) if norm is None else None
        self.tokens, self.num_tokens, self.ngrams = tokens, num_tokens, ngrams
        self.bias = Bias(declared.bias)

    def forward(self, hidden_MH: paddle.Tensor) -> LazyLogits:
        """Return logits over C classes."""
        transformed = activation(self.act, self.transform(hidden_MH))
        if self.norm is None:
            assert self.table is not None
            return LazyLogits(transformed, (self.table.weight,), self.bias.value)
        x_ME = self.norm(transformed)
        # The token embedding may have more rows than the vocabulary has tokens; they are no classes.
        parts = [self.tokens.weight[: self.num_tokens], *([] if self.ngrams is None else [self.ngrams.weight])]
        return LazyLogits(x_ME, tuple(parts), self.bias.value)


@dataclass(frozen=True)
class TrunkParameters:
    """The parameters of an encoder with a head over classes; `ngrams` is an embedding of n-grams."""

    encoder: EncoderParameters
    ngrams: Parameter | None
    head: HeadParameters


def declare_head(config: PretrainConfig, sizes: CorpusSizes) -> HeadParameters:
    """Return the parameters of the head over masked slots."""
    return parameters.head("mask_lm", config.model, sizes.classes(config))


def declare_trunk(config: PretrainConfig, sizes: CorpusSizes) -> TrunkParameters:
    """Return the parameters of the trunk."""
    model, objective = config.model, config.objective
    # N-gram embeddings are needed if the output is tied to them, or if samples replace the masked slots.
    ngrams = sizes.classes(config) - sizes.tokens if objective.has_generator or not model.out_emb_size else 0
    size, std = model.embedding_size, model.initializer_range
    return TrunkParameters(
        parameters.encoder(model, model.vocab_size or sizes.tokens, with_queries=objective.has_queries),
        parameters.table("ngram_embedding", ngrams, size, std) if ngrams else None,
        declare_head(config, sizes),
    )


class Trunk(nn.Layer):
    """The encoder, the head "mask_lm" and the embedding of n-grams.

    Attributes:
        ngrams: None if nothing reads it.
        head: over all C units under explicit masking, over the F tokens under contiguous masking.
    """

    def __init__(self, config: PretrainConfig, sizes: CorpusSizes) -> None:
        super().__init__()
        declared, self.num_tokens = declare_trunk(config, sizes), sizes.tokens
        self.encoder = Encoder(declared.encoder, config.model)
        self.ngrams = optional(Embedding, declared.ngrams)
        word = self.encoder.embeddings.word
        self.head = PredictionHead(declared.head, config.model, word, sizes.tokens, self.ngrams)

    def replacement(self, slots_M: paddle.Tensor, units_M: paddle.Tensor) -> Replacement:
        """Return the embeddings of sampled units, int64 [M] of 0..C-1, that replace [MASK] in the masked slots."""
        num_tokens = self.num_tokens
        if self.ngrams is None:
            return Replacement(slots_M, self.encoder.embeddings.word(units_M))
        is_token_M1 = (units_M < num_tokens).astype("float32").unsqueeze(1)
        token_ME = self.encoder.embeddings.word(units_M.clip(max=num_tokens - 1))
        ngram_ME = self.ngrams((units_M - num_tokens).clip(min=0))
        return Replacement(slots_M, token_ME * is_token_M1 + ngram_ME * (1 - is_token_M1))
