"""Explicit masking: a masked unit is one [MASK], and its identity is predicted there (section 3.2)."""

from __future__ import annotations

from ernie_gram.pretraining.terms.units import MaskedUnits
from reader.batches import fields


class Explicit(MaskedUnits):
    """-log p(y | context) of the unit at every masked slot, over C classes (equation 2; first sum of equation 3)."""

    name = "coarse"
    labels = fields.COARSE_LABELS
    fields = (fields.COARSE_LABELS,)
