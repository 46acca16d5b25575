"""The generator, and the detection of what it replaces (section 3.4).

The generator is a smaller encoder, whose samples replace the [MASK]s that the main model reads.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import paddle
from paddle import nn
from paddle.nn import functional as F

from ernie_gram.model import parameters
from ernie_gram.model.attention import padding_bias
from ernie_gram.model.encoder import Encoder, activation
from ernie_gram.model.layers import Embedding, Linear, optional
from ernie_gram.model.parameters import LinearParameters, Normal, linear
from ernie_gram.pretraining.chunked_softmax import CrossEntropy, SoftmaxOptions
from ernie_gram.pretraining.config import PretrainConfig
from ernie_gram.pretraining.sizes import BatchShape, CorpusSizes
from ernie_gram.pretraining.terms.term import Encoded, Reference, Term, head_products, summed
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

    def forward(self, feeds: Feeds, softmax: SoftmaxOptions) -> CrossEntropy:
        """Return the loss and a sample over C classes for every masked slot; without labels, the loss means nothing."""
        input_ids, lengths, slots = (feeds[field.name] for field in (fields.INPUT_IDS, fields.LENGTHS, fields.SLOTS))
        masked_MH, _ = self.encoder(input_ids, lengths, wanted_M=slots)
        labels = feeds.get(fields.COARSE_LABELS.name)
        labels = paddle.zeros_like(slots) if labels is None else labels
        return softmax.cross_entropy(self.head(masked_MH), labels, self.temperature)


class Generator(Term):
    """The generator's -log p(y | context) of the unit at every masked slot, over C classes (equation 5, first term)."""

    name = "generator"
    fields = (fields.COARSE_LABELS,)
    num_sums = 2

    def loss(self, layer: Any, trunk: Trunk, encoded: Encoded) -> tuple[paddle.Tensor, paddle.Tensor]:
        assert encoded.generated is not None
        return summed(encoded.generated)

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

    def products(self, config: PretrainConfig, sizes: CorpusSizes, shape: BatchShape) -> int:
        main, small = config.model.embedding_size, config.generator.model(config.model).embedding_size
        projection = 2 * shape.rows * main * small if config.generator.share_embeddings else 0
        return projection + head_products(self.parameters(config, sizes).head, shape.predicted_rows)


class DetectionHead(nn.Layer):
    """One logit of "replaced" per row, gelu(H W) w + b, as in ELECTRA; the paper does not give its form."""

    def __init__(self, transform: LinearParameters, output: LinearParameters, act: str) -> None:
        super().__init__()
        self.transform, self.output, self.act = Linear(transform), Linear(output), act

    def forward(self, hidden_NH: paddle.Tensor) -> paddle.Tensor:
        """Return the logits, [N]."""
        return self.output(activation(self.act, self.transform(hidden_NH))).flatten()


class ReplacedTokens(Term):
    """Binary cross entropy of "replaced" at every non-padding slot (equation 6).

    A sample that equals the original unit counts as original.
    """

    name = "rtd"
    reads_context = True
    fields = (fields.COARSE_LABELS,)

    def loss(self, layer: Any, trunk: Trunk, encoded: Encoded) -> tuple[paddle.Tensor, paddle.Tensor]:
        feeds = encoded.feeds
        assert encoded.generated is not None
        assert encoded.context is not None
        assert encoded.generated.sampled is not None
        length = paddle.shape(feeds[fields.INPUT_IDS.name])[1]
        # -log sigmoid(-z) for originals, -log sigmoid(z) for replacements.
        logits_N = layer(encoded.context).astype("float32")
        replaced_M = (encoded.generated.sampled != feeds[fields.COARSE_LABELS.name]).astype("float32")
        replaced_N = paddle.scatter(paddle.zeros_like(logits_N), feeds[fields.SLOTS.name], replaced_M)
        real_N = (padding_bias(feeds[fields.LENGTHS.name], length) == 0).astype("float32").flatten()
        loss_N = F.binary_cross_entropy_with_logits(logits_N, replaced_N, reduction="none") * real_N
        return loss_N.sum(), real_N.sum()

    def num_rows(self, batch: Batch) -> int:
        return int(batch[fields.LENGTHS.name].sum())

    def parameters(self, config: PretrainConfig, sizes: CorpusSizes) -> tuple[LinearParameters, LinearParameters]:
        size, start = config.model.hidden_size, Normal(config.model.initializer_range)
        return linear("rtd_trans_fc", size, size, start), linear("rtd_out_fc", size, 1, start)

    def layer(self, config: PretrainConfig, sizes: CorpusSizes, trunk: Trunk) -> DetectionHead:
        return DetectionHead(*self.parameters(config, sizes), config.model.hidden_act)

    def products(self, config: PretrainConfig, sizes: CorpusSizes, shape: BatchShape) -> int:
        return 2 * shape.rows * config.model.hidden_size**2
