"""The generator: a smaller encoder whose samples replace the [MASK]s that the main model reads (section 3.4)."""

from __future__ import annotations

from typing import Any

import numpy as np
import paddle
from paddle import nn

from ernie_gram.model import parameters
from ernie_gram.model.config import ModelConfig
from ernie_gram.model.encoder import Encoder
from ernie_gram.model.layers import Embedding, optional
from ernie_gram.pretraining.chunked_softmax import CrossEntropy, LazyLogits, SoftmaxOptions
from ernie_gram.pretraining.config import PretrainConfig
from ernie_gram.pretraining.sizes import BatchShape, CorpusSizes
from ernie_gram.pretraining.terms.masked_units import summed
from ernie_gram.pretraining.terms.products import encoder_products, head_products
from ernie_gram.pretraining.terms.term import Encoded, Reference, Term
from ernie_gram.pretraining.trunk import PredictionHead, Trunk, TrunkParameters
from ernie_gram.training.job import Feeds
from reader.batches import fields
from reader.batches.fields import Batch


class GeneratorNetwork(nn.Layer):
    """A smaller encoder with a head over all C units. Its parameter names begin with "generator_".

    With shared embeddings, which are not in the paper, it reads the main model's token embeddings through a projection,
    and its head uses the output table of the main model's head.
    """

    def __init__(self, declared: TrunkParameters, config: PretrainConfig, num_tokens: int, trunk: Trunk) -> None:
        super().__init__()
        model, shares = config.generator.model(config.model), config.generator.share_embeddings
        self.encoder = Encoder(declared.encoder, model, trunk.encoder.embeddings.word if shares else None)
        ngrams = trunk.ngrams if shares else optional(Embedding, declared.ngrams)
        word = self.encoder.embeddings.word
        self.temperature = config.generator.temperature
        self.head = PredictionHead(declared.head, model, word, num_tokens, ngrams, trunk.head.table)

    def forward(self, input_ids_BL: paddle.Tensor, lengths_B: paddle.Tensor, slots_M: paddle.Tensor) -> LazyLogits:
        """Return logits over C classes for every masked slot, int64 [M] as b * L + l."""
        masked_MH, _ = self.encoder(input_ids_BL, lengths_B, wanted_M=slots_M)
        return self.head(masked_MH)


class Generator(Term):
    """The generator's -log p(y | context) of the unit at every masked slot, over C classes (equation 5, first term)."""

    name = "generator"
    fields = (fields.COARSE_LABELS,)
    unit_biases = ("generator_mask_lm_out_fc.b_0",)
    num_sums = 2

    def loss(self, layer: Any, trunk: Trunk, encoded: Encoded) -> tuple[paddle.Tensor, paddle.Tensor]:
        assert encoded.generated is not None
        return summed(encoded.generated)

    def num_rows(self, batch: Batch) -> int:
        return len(batch[fields.COARSE_LABELS.name])

    def parameters(self, config: PretrainConfig, sizes: CorpusSizes) -> TrunkParameters:
        main, model, shares = config.model, config.generator.model(config.model), config.generator.share_embeddings
        classes, width = sizes.classes(config), main.embedding_size if shares else None
        ngrams = 0 if shares or model.out_emb_size else classes - sizes.tokens
        std = model.initializer_range
        return TrunkParameters(
            parameters.encoder(model, main.vocab_size or sizes.tokens, "generator_", width),
            parameters.table("generator_ngram_embedding", ngrams, model.hidden_size, std) if ngrams else None,
            parameters.head("generator_mask_lm", model, classes, width, shares),
        )

    def layer(self, config: PretrainConfig, sizes: CorpusSizes, trunk: Trunk) -> GeneratorNetwork:
        return GeneratorNetwork(self.parameters(config, sizes), config, sizes.tokens, trunk)

    def generated(self, layer: Any, feeds: Feeds, softmax: SoftmaxOptions) -> CrossEntropy:
        input_ids, lengths, slots = (feeds[field.name] for field in (fields.INPUT_IDS, fields.LENGTHS, fields.SLOTS))
        labels = feeds.get(fields.COARSE_LABELS.name)
        labels = paddle.zeros_like(slots) if labels is None else labels
        return softmax.cross_entropy(layer(input_ids, lengths, slots), labels, layer.temperature)

    def fetches(self, layer: Any, trunk: Trunk, encoded: Encoded) -> dict[str, paddle.Tensor]:
        """Return `generator_loss`, float32 [M]."""
        assert encoded.generated is not None
        return {"generator_loss": encoded.generated.row_loss}

    def sums(self, fetched: dict[str, np.ndarray], batch: Batch, reference: Reference) -> list[float]:
        """Return the number of masked n-grams, and their -log p by the generator."""
        is_ngram = batch[fields.UNIT_IDS.name] >= reference.num_tokens
        return [is_ngram.sum(), fetched["generator_loss"][is_ngram].sum()]

    def metrics(self, sums: list[float]) -> dict[str, float]:
        """Return generator_ngram_perplexity, absent if there were no n-grams."""
        ngrams, loss = sums
        return {"generator_ngram_perplexity": float(np.exp(loss / ngrams))} if ngrams else {}

    def sparse_parameters(self, config: PretrainConfig) -> frozenset[str]:
        """Return the n-gram embedding if no output is tied to it: then only samples are looked up in it.

        The token embedding is not sparse, because a large batch contains most tokens.
        """
        return frozenset({"ngram_embedding"} if config.model.out_emb_size else ())

    def encoder(self, config: PretrainConfig) -> ModelConfig:
        return config.generator.model(config.model)

    def products(self, config: PretrainConfig, sizes: CorpusSizes, shape: BatchShape) -> dict[str, int]:
        small = self.encoder(config)
        encoder = encoder_products(small, shape.rows, shape.slots, shape.predicted_rows)
        if config.generator.share_embeddings:
            encoder += 2 * shape.rows * config.model.embedding_size * small.embedding_size
        head = head_products(self.parameters(config, sizes).head, shape.predicted_rows)
        return {"generator": encoder, "generator head": head}
