"""Rank the units in masked slots by their probabilities.

Shape letters: M masked slots, C classes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reader.batches import fields
from reader.batches.fields import Batch
from reader.corpus.units import UnitNames
from reader.system.arrays import Float32s

DRAWS = 8  # default number of a generator's samples to average over
LINES_PER_BATCH = 16  # default number of texts per batch


@dataclass(frozen=True)
class Guess:
    """A unit and its probability."""

    unit: str
    probability: float


def best_units(units: UnitNames, probabilities_C: Float32s, limit: int, ngrams_only: bool = False) -> list[Guess]:
    """Return the `limit` units with the highest probability in one slot, best first. Special tokens are left out.

    Probabilities are not normalised again, so without the special tokens they do not add up to 1.
    """
    first = len(units.vocabulary) if ngrams_only else 0
    special = units.vocabulary.special_ids
    best = first + np.argsort(-probabilities_C[first:], kind="stable")[: limit + len(special)]
    ranked = best[~np.isin(best, special)][:limit]
    return [Guess(units.text(int(unit)), float(probabilities_C[unit])) for unit in ranked]


def guesses_by_row(
    units: UnitNames, batch: Batch, probabilities_MC: Float32s, limit: int, ngrams_only: bool = False
) -> list[list[list[Guess]]]:
    """Return the `limit` best units for every masked slot of every sequence of a batch."""
    num_rows, length = batch[fields.INPUT_IDS.name].shape
    guesses: list[list[list[Guess]]] = [[] for _ in range(num_rows)]
    for slot, probabilities_C in zip(batch[fields.SLOTS.name], probabilities_MC, strict=True):
        guesses[slot // length].append(best_units(units, probabilities_C, limit, ngrams_only))
    return guesses
