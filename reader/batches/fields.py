"""The contract between reader and model: every field a batch may hold, its shape and its type.

Shape letters: B sequences, L context slots (the longest of the batch), M predicted slots, U masked units,
K query rows (the most in a sequence), Q query rows of the batch that are not padding.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

Batch = dict[str, np.ndarray]


@dataclass(frozen=True)
class Field:
    """One field: its name, its shape in the letters above, and its dtype."""

    name: str
    shape: str
    dtype: str
    meaning: str


INPUT_IDS = Field("input_ids", "BL", "int64", "token in every context slot, [MASK] in masked ones, [PAD] behind")
LENGTHS = Field("lengths", "B", "int64", "context slots that are not padding")
SLOTS = Field("slots", "M", "int64", "predicted slots, as b * L + l")
COARSE_LABELS = Field("coarse_labels", "M", "int64", "identity of the unit each predicted slot hides, 0..C-1")
TOKEN_LABELS = Field("token_labels", "M", "int64", "token each predicted slot hides, 0..F-1 (contiguous masking)")
# The rows [M1]..[Mk] of a masked n-gram's tokens, for comprehensive prediction.
QUERY_SLOTS = Field("query_slots", "BK", "int64", "slot of its own sequence that each query row asks about; padding: 0")
QUERY_RANKS = Field(
    "query_ranks", "BK", "int64", "i - 1 for row [Mi], which asks for the unit's i-th token; padding: 0"
)
FINE_ROWS = Field("fine_rows", "Q", "int64", "query rows that are not padding, as b * K + k")
FINE_LABELS = Field("fine_labels", "Q", "int64", "token that each of fine_rows asks for, 0..F-1")
# The two below never enter a program: they say how to sum predictions by unit.
SLOT_UNITS = Field("slot_units", "M", "int64", "masked unit a predicted slot belongs to, 0..U-1")
UNIT_IDS = Field("unit_ids", "U", "int64", "identities of the masked units")

FIELDS = {
    field.name: field
    for field in (
        *(INPUT_IDS, LENGTHS, SLOTS, COARSE_LABELS, TOKEN_LABELS),
        *(QUERY_SLOTS, QUERY_RANKS, FINE_ROWS, FINE_LABELS),
        *(SLOT_UNITS, UNIT_IDS),
    )
}
