"""Ranking units for a masked slot."""

from __future__ import annotations

import numpy as np

from ernie_gram.inference.units import Guess, best_units
from reader.corpus.units import UnitNames
from reader.tokenization.wordpiece import WordPieceVocabulary


def test_special_tokens_are_no_answer_and_the_probabilities_stay() -> None:
    units = UnitNames(WordPieceVocabulary(["[PAD]", "a", "[UNK]", "[CLS]", "b", "[SEP]", "[MASK]", "c"]), None)
    probabilities = np.array([0.05, 0.1, 0.5, 0.06, 0.03, 0.07, 0.08, 0.11], np.float32)
    expected = [Guess(text, float(np.float32(value))) for text, value in (("c", 0.11), ("a", 0.1), ("b", 0.03))]
    for limit in range(1, 10):
        assert best_units(units, probabilities, limit) == expected[:limit]
