"""The network that is pre-trained: encoder, prediction heads, and the generator that proposes replacements.

Shape letters: B sequences, L slots, N = B * L, K query rows per sequence, R = B * K, M masked slots, E embedding
size, H hidden, F tokens, C = F + number of n-grams.
"""

from __future__ import annotations

from dataclasses import dataclass

import paddle
from paddle import nn

from ernie_gram.model.config import ModelConfig
from ernie_gram.model.encoder import Encoder, Replacement
from ernie_gram.model.layers import Embedding
from ernie_gram.pretraining.chunked_softmax import LazyLogits
from ernie_gram.pretraining.config import PretrainConfig
from ernie_gram.pretraining.heads import DetectionHead, LowRankHead, TiedHead


@dataclass(frozen=True)
class VocabularySizes:
    """Sizes that the model takes from the corpus: F tokens and N n-grams; C = F + N."""

    tokens: int
    ngrams: int


class Generator(nn.Layer):
    """A smaller encoder with a head over all C units (section 3.4). Its parameter names begin with "generator_".

    Shared embeddings (choice): it reads the main model's token embeddings through a projection, and its head uses the
    output table of the main model's head.
    """

    def __init__(
        self,
        config: PretrainConfig,
        sizes: VocabularySizes,
        main: Encoder,
        head: nn.Layer,
        ngrams: Embedding | None,
    ) -> None:
        super().__init__()
        model = config.generator.model(config.model)
        vocab_size, classes = config.model.vocab_size or sizes.tokens, sizes.tokens + sizes.ngrams
        shares = config.generator.share_embeddings
        word = main.embeddings.word
        self.encoder = Encoder(model, vocab_size, "generator_", word if shares else None)
        self.head: nn.Layer
        if model.out_emb_size:
            self.head = LowRankHead("generator_mask_lm", model, classes, head.table if shares else None)
        elif shares:
            self.head = TiedHead("generator_mask_lm", model, word, sizes.tokens, ngrams)
        else:
            own = None
            if sizes.ngrams:
                own = Embedding("generator_ngram_embedding", sizes.ngrams, model.hidden_size, model.initializer_range)
            self.head = TiedHead("generator_mask_lm", model, self.encoder.embeddings.word, sizes.tokens, own)

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

    def __init__(self, config: PretrainConfig, sizes: VocabularySizes) -> None:
        super().__init__()
        model, objective = config.model, config.objective
        self.sizes = sizes
        self.encoder = Encoder(model, model.vocab_size or sizes.tokens, with_queries=objective.has_queries)
        tokens = self.encoder.embeddings.word
        ngrams = sizes.ngrams if objective.is_explicit else 0
        # N-gram embeddings are needed if the output is tied to them, or if samples replace the masked slots.
        self.ngrams: Embedding | None = None
        if ngrams and (objective.has_generator or not model.out_emb_size):
            self.ngrams = Embedding("ngram_embedding", ngrams, model.embedding_size, model.initializer_range)
        self.head = self._head("mask_lm", model, sizes.tokens + ngrams, tokens, self.ngrams)
        self.fine = self._head("fine_lm", model, sizes.tokens, tokens, None) if objective.has_queries else None
        self.generator = None
        if objective.has_generator:
            self.generator = Generator(config, sizes, self.encoder, self.head, self.ngrams)
        self.detection = DetectionHead("rtd", model) if objective.rtd_weight else None

    def _head(
        self, prefix: str, config: ModelConfig, classes: int, tokens: Embedding, ngrams: Embedding | None
    ) -> nn.Layer:
        if config.out_emb_size:
            return LowRankHead(prefix, config, classes)
        return TiedHead(prefix, config, tokens, self.sizes.tokens, ngrams)

    def replacement(self, slots_M: paddle.Tensor, units_M: paddle.Tensor) -> Replacement:
        """Return the embeddings of sampled units, int64 [M] of 0..C-1, that replace [MASK] in the masked slots."""
        num_tokens = self.sizes.tokens
        if self.ngrams is None:
            return Replacement(slots_M, self.encoder.embeddings.word(units_M))
        is_token_M1 = (units_M < num_tokens).astype("float32").unsqueeze(1)
        token_ME = self.encoder.embeddings.word(units_M.clip(max=num_tokens - 1))
        ngram_ME = self.ngrams((units_M - num_tokens).clip(min=0))
        return Replacement(slots_M, token_ME * is_token_M1 + ngram_ME * (1 - is_token_M1))
