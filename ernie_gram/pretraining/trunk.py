"""The part of the network that all terms share: the encoder, the head over masked slots, and the n-gram embedding.

Shape letters: N context rows, M masked slots, E embedding size, H hidden, F tokens, C = F + number of n-grams.
"""

from __future__ import annotations

from dataclasses import dataclass

import paddle
from paddle import nn

from ernie_gram.model import parameters
from ernie_gram.model.encoder import Encoder, Replacement
from ernie_gram.model.layers import Embedding, optional
from ernie_gram.model.parameters import EncoderParameters, HeadParameters, Parameter
from ernie_gram.pretraining.config import PretrainConfig
from ernie_gram.pretraining.heads import PredictionHead
from ernie_gram.pretraining.sizes import CorpusSizes


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
