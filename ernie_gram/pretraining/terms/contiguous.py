"""Contiguous masking: every token of a masked unit is a [MASK] and is predicted there (section 3.1, the baseline)."""

from __future__ import annotations

from ernie_gram.pretraining.config import ObjectiveConfig
from ernie_gram.pretraining.terms.units import MaskedUnits
from reader.batches import fields


class Contiguous(MaskedUnits):
    """-log p(x | z_\\M) of every contiguously masked token, over F classes (equation 1)."""

    name = "token"
    labels = fields.TOKEN_LABELS
    fields = (fields.TOKEN_LABELS,)

    def weight(self, objective: ObjectiveConfig) -> float:
        return 0.0 if objective.is_explicit else objective.fine_weight
