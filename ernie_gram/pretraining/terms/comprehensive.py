"""Comprehensive prediction: query rows predict the tokens of each masked unit (section 3.3)."""

from __future__ import annotations

from typing import Any

import paddle
from paddle import nn

from ernie_gram.model.parameters import HeadParameters, head
from ernie_gram.pretraining.config import PretrainConfig
from ernie_gram.pretraining.sizes import BatchShape, CorpusSizes
from ernie_gram.pretraining.terms.masked_units import summed
from ernie_gram.pretraining.terms.products import encoder_products, head_products
from ernie_gram.pretraining.terms.term import Encoded, Term
from ernie_gram.pretraining.trunk import PredictionHead, Trunk
from reader.batches import fields
from reader.batches.fields import Batch


class Comprehensive(Term):
    """-log p(x_i | context, [Mi]) of the i-th token of each masked unit, over F classes (second sum of equation 3)."""

    name = "comprehensive"
    fields = (fields.QUERY_SLOTS, fields.QUERY_RANKS, fields.FINE_ROWS, fields.FINE_LABELS)
    token_biases = ("fine_lm_out_fc.b_0",)

    def loss(self, layer: Any, trunk: Trunk, encoded: Encoded) -> tuple[paddle.Tensor, paddle.Tensor]:
        assert encoded.queries is not None
        logits = layer(paddle.gather(encoded.queries, encoded.feeds[fields.FINE_ROWS.name]))
        return summed(encoded.softmax.cross_entropy(logits, encoded.feeds[fields.FINE_LABELS.name]))

    def num_rows(self, batch: Batch) -> int:
        return len(batch[fields.FINE_LABELS.name])

    def parameters(self, config: PretrainConfig, sizes: CorpusSizes) -> HeadParameters:
        return head("fine_lm", config.model, sizes.tokens)

    def layer(self, config: PretrainConfig, sizes: CorpusSizes, trunk: Trunk) -> nn.Layer:
        declared = self.parameters(config, sizes)
        return PredictionHead(declared, config.model, trunk.encoder.embeddings.word, sizes.tokens)

    def products(self, config: PretrainConfig, sizes: CorpusSizes, shape: BatchShape) -> dict[str, int]:
        return {
            "query rows": encoder_products(config.model, shape.query_rows, shape.slots, shape.query_rows),
            "fine head": head_products(self.parameters(config, sizes), shape.fine_rows),
        }
