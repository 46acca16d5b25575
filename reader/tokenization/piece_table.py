"""A table of the tokens (pieces) of each word."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np

from reader.tokenization.vocabulary import Vocabulary


class PieceTable:
    """The token IDs of words: those of word i are pieces[offsets[i]:offsets[i + 1]].

    Attributes:
        pieces: int32 [total number of tokens]; offsets: int64 [words + 1].
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._encode = vocabulary.encode
        self.pieces = np.zeros(0, np.int32)
        self.offsets = np.zeros(1, np.int64)

    def __len__(self) -> int:
        """Return the number of words."""
        return len(self.offsets) - 1

    def extend(self, words: Sequence[str]) -> None:
        """Append words; the first of them gets the index len(self)."""
        if not words:
            return
        ends, pieces = array("q"), array("i")
        for word in words:
            pieces.extend(self._encode(word))
            ends.append(len(pieces))
        self.offsets = np.concatenate([self.offsets, self.offsets[-1] + np.asarray(ends, np.int64)])
        self.pieces = np.concatenate([self.pieces, np.asarray(pieces, np.int32)])

    def truncate(self, num_words: int) -> None:
        """Remove all words except the first `num_words`."""
        self.offsets = self.offsets[: num_words + 1].copy()
        self.pieces = self.pieces[: self.offsets[-1]].copy()
