"""A list of n-grams with their counts and scores, stored as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from reader.tables.string_table import PackedStrings, pack_strings, take_strings, unpack_strings

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Float64s = npt.NDArray[np.float64]


class NGrams(NamedTuple):
    """N-grams over a list of distinct words. The words of n-gram i are words[word_ids[offsets[i]:offsets[i + 1]]].

    Attributes:
        words: the distinct words.
        word_ids: int32, indices into `words`; offsets: int64 [n + 1].
        counts: int64 [n]; t: float64 [n].
    """

    words: Sequence[str]
    word_ids: Int32s
    offsets: Int64s
    counts: Int64s
    t: Float64s

    @classmethod
    def from_texts(cls, texts: list[str], counts: Int64s, t: Float64s) -> NGrams:
        """Make n-grams from texts whose words are separated by single spaces."""
        orders = np.fromiter((text.count(" ") + 1 for text in texts), np.int64, len(texts))
        flat = " ".join(texts).split(" ") if texts else []
        id_of_word = {word: word_id for word_id, word in enumerate(dict.fromkeys(flat))}
        word_ids = np.fromiter(map(id_of_word.__getitem__, flat), np.int32, len(flat))
        return cls(list(id_of_word), word_ids, np.concatenate([[0], np.cumsum(orders)]), counts, t)

    @property
    def orders(self) -> Int64s:
        """The number of words of each n-gram, int64 [n]."""
        return np.diff(self.offsets)

    def text(self, i: int) -> str:
        """Return the words of n-gram i, joined by spaces."""
        return " ".join(self.words[word_id] for word_id in self.word_ids[self.offsets[i] : self.offsets[i + 1]])

    def texts(self) -> list[str]:
        """Return the text of every n-gram: its words, joined by spaces."""
        ends, letters = take_strings(pack_strings([f"{word} " for word in self.words]), self.word_ids)
        texts = PackedStrings(ends[self.offsets], letters)
        return [text[:-1] for text in unpack_strings(texts)]

    def select(self, keep: npt.NDArray[np.bool_]) -> NGrams:
        """Return the n-grams for which `keep`, bool [n], is true. The list of words does not change."""
        orders = self.orders
        offsets = np.concatenate([[0], np.cumsum(orders[keep])])
        return NGrams(self.words, self.word_ids[np.repeat(keep, orders)], offsets, self.counts[keep], self.t[keep])


NO_NGRAMS = NGrams.from_texts([], np.zeros(0, np.int64), np.zeros(0, np.float64))
