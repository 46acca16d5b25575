"""The network that is pre-trained: encoder, prediction heads, and the generator that proposes replacements.

Shape letters: B sequences, L slots, N = B * L, K query rows per sequence, R = B * K, M masked slots, E embedding
size, H hidden, F tokens, C = F + number of n-grams.
"""

from __future__ import annotations

import paddle
from paddle import nn

from ernie_gram.model.config import ModelConfig
from ernie_gram.model.encoder import Encoder, Replacement
from ernie_gram.model.layers import Embedding, optional
from ernie_gram.model.parameters import HeadParameters
from ernie_gram.pretraining.chunked_softmax import LazyLogits
from ernie_gram.pretraining.config import PretrainConfig
from ernie_gram.pretraining.heads import DetectionHead, LowRankHead, TiedHead
from ernie_gram.pretraining.parameters import GeneratorParameters, declare
from ernie_gram.pretraining.sizes import CorpusSizes


class Generator(nn.Layer):
    """A smaller encoder with a head over all C units (section 3.4). Its parameter names begin with "generator_".

    Shared embeddings (choice): it reads the main model's token embeddings through a projection, and its head uses the
    output table of the main model's head.
    """

    def __init__(
        self,
        declared: GeneratorParameters,
        config: PretrainConfig,
        num_tokens: int,
        main: Encoder,
        head: nn.Layer,
        ngrams: Embedding | None,
    ) -> None:
        super().__init__()
        model, shares = config.generator.model(config.model), config.generator.share_embeddings
        self.encoder = Encoder(declared.encoder, model, main.embeddings.word if shares else None)
        self.head: nn.Layer
        if model.out_emb_size:
            self.head = LowRankHead(declared.head, model, head.table)
        else:
            own = optional(Embedding, declared.ngrams)
            word = self.encoder.embeddings.word
            self.head = TiedHead(declared.head, model, word, num_tokens, ngrams if shares else own)

    def forward(self, input_ids_BL: paddle.Tensor, lengths_B: paddle.Tensor, slots_M: paddle.Tensor) -> LazyLogits:
        """Return logits over C classes for every masked slot, int64 [M] as b * L + l."""
        hidden_NH, _ = self.encoder(input_ids_BL, lengths_B)
        return self.head(paddle.gather(hidden_NH, slots_M))


class PretrainModel(nn.Layer):
    """The encoder, and the heads and tables that the objective needs.

    Attributes:
        head: "mask_lm", over all C units under explicit masking, over the F tokens under contiguous masking.
        fine: "fine_lm", over the F tokens, for query rows; None without query rows.
        generator: None without one.
        detection: "rtd", whether a slot was replaced; None if the objective has no replaced token detection.
    """

    def __init__(self, config: PretrainConfig, sizes: CorpusSizes) -> None:
        super().__init__()
        declared = declare(config, sizes)
        self.num_tokens = sizes.tokens
        self.encoder = Encoder(declared.encoder, config.model)
        self.ngrams = optional(Embedding, declared.ngrams)
        self.head = self._head(declared.head, config.model, self.ngrams)
        self.fine = optional(lambda head: self._head(head, config.model, None), declared.fine)
        self.generator = None
        if declared.generator is not None:
            self.generator = Generator(declared.generator, config, sizes.tokens, self.encoder, self.head, self.ngrams)
        self.detection = optional(lambda head: DetectionHead(head, config.model), declared.detection)

    def _head(self, declared: HeadParameters, config: ModelConfig, ngrams: Embedding | None) -> nn.Layer:
        if config.out_emb_size:
            return LowRankHead(declared, config)
        return TiedHead(declared, config, self.encoder.embeddings.word, self.num_tokens, ngrams)

    def replacement(self, slots_M: paddle.Tensor, units_M: paddle.Tensor) -> Replacement:
        """Return the embeddings of sampled units, int64 [M] of 0..C-1, that replace [MASK] in the masked slots."""
        num_tokens = self.num_tokens
        if self.ngrams is None:
            return Replacement(slots_M, self.encoder.embeddings.word(units_M))
        is_token_M1 = (units_M < num_tokens).astype("float32").unsqueeze(1)
        token_ME = self.encoder.embeddings.word(units_M.clip(max=num_tokens - 1))
        ngram_ME = self.ngrams((units_M - num_tokens).clip(min=0))
        return Replacement(slots_M, token_ME * is_token_M1 + ngram_ME * (1 - is_token_M1))
