"""The terms that predict masked units: contiguous and explicit masking, and comprehensive prediction.

The metrics are over the masked units of held-out text. The probability of a unit with several predicted slots is the
product over its slots; it is predicted correctly if all of them are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import paddle
from paddle import nn

from ernie_gram.model.parameters import HeadParameters, head
from ernie_gram.pretraining.chunked_softmax import CrossEntropy
from ernie_gram.pretraining.config import PretrainConfig
from ernie_gram.pretraining.sizes import BatchShape, CorpusSizes
from ernie_gram.pretraining.terms.term import Encoded, Reference, Term, head_products, summed
from ernie_gram.pretraining.trunk import PredictionHead, Trunk, declare_head
from reader.batches import fields
from reader.batches.fields import Batch, Field


class MaskedUnits(Term):
    """-log p of the label of every masked slot, over the classes of the head "mask_lm"; `labels`: the field of them."""

    labels: Field
    num_sums = 6

    def cross_entropy(self, trunk: Trunk, encoded: Encoded) -> CrossEntropy:
        """Return the losses of the masked slots."""
        return encoded.softmax.cross_entropy(trunk.head(encoded.masked), encoded.feeds[self.labels.name])

    def loss(self, layer: Any, trunk: Trunk, encoded: Encoded) -> tuple[paddle.Tensor, paddle.Tensor]:
        return summed(self.cross_entropy(trunk, encoded))

    def fetches(self, layer: Any, trunk: Trunk, encoded: Encoded) -> dict[str, paddle.Tensor]:
        """Return `row_loss`, float32 [M], and `row_best`, int64 [M], the class with the largest probability."""
        result = self.cross_entropy(trunk, encoded)
        return {"row_loss": result.row_loss, "row_best": result.row_best}

    def sums(self, fetched: dict[str, np.ndarray], batch: Batch, reference: Reference) -> list[float]:
        """Return six sums over the masked units.

        They are the number of units; their -log p; the number of correctly predicted units; -log p of all units by the
        baseline (NaN without one); the number of n-grams; and the n-grams' -log p.
        """
        units, slot_units = batch[fields.UNIT_IDS.name], batch[fields.SLOT_UNITS.name]
        loss = np.bincount(slot_units, fetched["row_loss"].astype(np.float64), len(units))
        wrong = np.bincount(slot_units, fetched["row_best"] != batch[self.labels.name], len(units))
        is_ngram, baseline = units >= reference.num_tokens, reference.baseline
        return [
            len(units),
            loss.sum(),
            (wrong == 0).sum(),
            -baseline[units].sum() if baseline is not None else np.nan,
            is_ngram.sum(),
            loss[is_ngram].sum(),
        ]

    def metrics(self, sums: list[float]) -> dict[str, float]:
        """Return the metrics by name.

        `loss` is the mean -log p of a masked unit, `perplexity` its exponential, `accuracy` the share of correctly
        predicted units, `frequency_perplexity` that of the baseline by unit frequencies (absent without one), and
        `ngram_perplexity` that of the masked n-grams (absent if there were none).
        """
        units, loss, right, baseline, ngrams, ngram_loss = sums
        values = {"loss": loss / units, "accuracy": right / units, "perplexity": float(np.exp(loss / units))}
        if not np.isnan(baseline):
            values["frequency_perplexity"] = float(np.exp(baseline / units))
        if ngrams:
            values["ngram_perplexity"] = float(np.exp(ngram_loss / ngrams))
        return values

    def products(self, config: PretrainConfig, sizes: CorpusSizes, shape: BatchShape) -> int:
        return head_products(declare_head(config, sizes), shape.predicted_rows)


class Contiguous(MaskedUnits):
    """Contiguous masking, the baseline: every token of a masked unit is a [MASK] and is predicted there (section 3.1).

    -log p(x | z_\\M) of every contiguously masked token, over F classes (equation 1).
    """

    name = "contiguous"
    labels = fields.TOKEN_LABELS
    fields = (fields.TOKEN_LABELS,)


class Explicit(MaskedUnits):
    """Explicit masking: a masked unit is one [MASK], and its identity is predicted there (section 3.2).

    -log p(y | context) of the unit at every masked slot, over C classes (equation 2; first sum of equation 3).
    """

    name = "explicit"
    labels = fields.COARSE_LABELS
    fields = (fields.COARSE_LABELS,)


class Comprehensive(Term):
    """-log p(x_i | context, [Mi]) of the i-th token of each masked unit, over F classes (second sum of equation 3)."""

    name = "comprehensive"
    fields = (fields.QUERY_SLOTS, fields.QUERY_RANKS, fields.FINE_ROWS, fields.FINE_LABELS)

    def loss(self, layer: Any, trunk: Trunk, encoded: Encoded) -> tuple[paddle.Tensor, paddle.Tensor]:
        assert encoded.queries is not None
        logits = layer(paddle.gather(encoded.queries, encoded.feeds[fields.FINE_ROWS.name]))
        return summed(encoded.softmax.cross_entropy(logits, encoded.feeds[fields.FINE_LABELS.name]))

    def parameters(self, config: PretrainConfig, sizes: CorpusSizes) -> HeadParameters:
        return head("fine_lm", config.model, sizes.tokens)

    def layer(self, config: PretrainConfig, sizes: CorpusSizes, trunk: Trunk) -> nn.Layer:
        declared = self.parameters(config, sizes)
        return PredictionHead(declared, config.model, trunk.encoder.embeddings.word, sizes.tokens)

    def products(self, config: PretrainConfig, sizes: CorpusSizes, shape: BatchShape) -> int:
        return head_products(self.parameters(config, sizes), shape.fine_rows)
