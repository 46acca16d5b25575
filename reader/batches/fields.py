"""The contract between reader and model: every field that a batch may contain, with its shape and dtype.

Shape letters: B sequences; L context slots, the maximum over the batch; M predicted slots of the batch; U masked units
of the batch; K query rows per sequence, the maximum over the batch; Q query rows of the batch, without padding.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

Batch = dict[str, np.ndarray]


@dataclass(frozen=True)
class Field:
    """A field: its name, its shape in the letters above, its dtype, and its meaning."""

    name: str
    shape: str
    dtype: str
    meaning: str


INPUT_IDS = Field(
    "input_ids", "BL", "int64", "token ID in every context slot; [MASK] in masked slots, [PAD] at the end"
)
LENGTHS = Field("lengths", "B", "int64", "number of context slots without padding")
SLOTS = Field("slots", "M", "int64", "indices of the predicted slots, b * L + l")
COARSE_LABELS = Field("coarse_labels", "M", "int64", "identity of the unit masked in each predicted slot, 0..C-1")
TOKEN_LABELS = Field(
    "token_labels", "M", "int64", "token ID masked in each predicted slot, 0..F-1 (contiguous masking)"
)
# Query rows [M1]..[Mk] for the k tokens of a masked unit: comprehensive n-gram prediction (paper, section 3.3).
QUERY_SLOTS = Field(
    "query_slots", "BK", "int64", "slot, in the same sequence, of each query row's masked unit; padding: 0"
)
QUERY_RANKS = Field(
    "query_ranks", "BK", "int64", "i - 1 for row [Mi], which predicts the i-th token of the unit; padding: 0"
)
FINE_ROWS = Field("fine_rows", "Q", "int64", "indices of the query rows that are not padding, b * K + k")
FINE_LABELS = Field("fine_labels", "Q", "int64", "token ID that each of fine_rows predicts, 0..F-1")
# Only for pairs of texts, and only for models that use sentence embeddings.
SENTENCE_IDS = Field("sentence_ids", "BL", "int64", "1 in the context slots of the second text, else 0; padding: 0")
# The next two fields are not fed to a program: evaluation uses them to sum predictions by unit.
SLOT_UNITS = Field("slot_units", "M", "int64", "index of the masked unit of each predicted slot, 0..U-1")
UNIT_IDS = Field("unit_ids", "U", "int64", "identities of the masked units")

FIELDS = {
    field.name: field
    for field in (
        *(INPUT_IDS, LENGTHS, SLOTS, COARSE_LABELS, TOKEN_LABELS),
        *(QUERY_SLOTS, QUERY_RANKS, FINE_ROWS, FINE_LABELS),
        *(SENTENCE_IDS, SLOT_UNITS, UNIT_IDS),
    )
}
