"""The model that is pre-trained: encoder and prediction head."""

from __future__ import annotations

from dataclasses import dataclass

from paddle import nn

from ernie_gram.config import ModelConfig
from ernie_gram.encoder import Encoder
from ernie_gram.heads import LowRankHead, TiedHead
from ernie_gram.layers import Table


@dataclass(frozen=True)
class Sizes:
    """What the corpus says of the model's size: F tokens and N n-grams; C = F + N."""

    tokens: int
    ngrams: int


class PretrainModel(nn.Layer):
    """Encoder with the head "mask_lm".

    Under explicit masking the head ranks all C units, n-grams among them; under contiguous masking the F tokens.
    """

    def __init__(self, config: ModelConfig, sizes: Sizes, explicit: bool) -> None:
        super().__init__()
        self.encoder = Encoder(config, config.vocab_size or sizes.tokens)
        ngrams = sizes.ngrams if explicit else 0
        if config.out_emb_size:
            self.head: nn.Layer = LowRankHead("mask_lm", config, sizes.tokens + ngrams)
        else:
            table = None
            if ngrams:
                table = Table("ngram_embedding", ngrams, config.embedding_size, config.initializer_range)
            self.head = TiedHead("mask_lm", config, self.encoder.embeddings.word, sizes.tokens, table)
