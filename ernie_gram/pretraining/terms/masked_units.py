"""The terms that predict masked units over the classes of the head "mask_lm": contiguous and explicit masking.

Their metrics are over the masked units of held-out text. The probability of a unit with several predicted slots is the
product over its slots; it is predicted correctly if all of them are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import paddle

from ernie_gram.pretraining.chunked_softmax import CrossEntropy
from ernie_gram.pretraining.config import PretrainConfig
from ernie_gram.pretraining.sizes import BatchShape, CorpusSizes
from ernie_gram.pretraining.terms.products import head_products
from ernie_gram.pretraining.terms.term import Encoded, Reference, Term
from ernie_gram.pretraining.trunk import Trunk, declare_head
from reader.batches import fields
from reader.batches.fields import Batch, Field


def summed(result: CrossEntropy) -> tuple[paddle.Tensor, paddle.Tensor]:
    """Return the sum of the losses of a softmax and its number of rows, float32 scalars."""
    return result.total, paddle.shape(result.row_loss)[0].astype("float32")


class MaskedUnits(Term):
    """-log p of the label of every masked slot; `labels` is the field that has them."""

    labels: Field
    unit_biases = ("mask_lm_out_fc.b_0",)
    num_sums = 6

    def cross_entropy(self, trunk: Trunk, encoded: Encoded) -> CrossEntropy:
        """Return the losses of the masked slots."""
        return encoded.softmax.cross_entropy(trunk.head(encoded.masked), encoded.feeds[self.labels.name])

    def loss(self, layer: Any, trunk: Trunk, encoded: Encoded) -> tuple[paddle.Tensor, paddle.Tensor]:
        return summed(self.cross_entropy(trunk, encoded))

    def num_rows(self, batch: Batch) -> int:
        return len(batch[self.labels.name])

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

    def products(self, config: PretrainConfig, sizes: CorpusSizes, shape: BatchShape) -> dict[str, int]:
        return {"head": head_products(declare_head(config, sizes), shape.predicted_rows)}


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
