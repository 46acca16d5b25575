"""Many n-grams with their counts and scores, as arrays."""

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
    """N-grams over a list of different words: those of n-gram i are words[numbers[offsets[i]:offsets[i + 1]]].

    Attributes:
        words: none twice.
        numbers: int32; offsets: int64 [n + 1].
        counts: int64 [n]; t: float64 [n].
    """

    words: Sequence[str]
    numbers: Int32s
    offsets: Int64s
    counts: Int64s
    t: Float64s

    @classmethod
    def of_texts(cls, texts: list[str], counts: Int64s, t: Float64s) -> NGrams:
        """N-grams whose words are joined by spaces."""
        orders = np.fromiter((text.count(" ") + 1 for text in texts), np.int64, len(texts))
        flat = " ".join(texts).split(" ") if texts else []
        places = {word: place for place, word in enumerate(dict.fromkeys(flat))}
        numbers = np.fromiter(map(places.__getitem__, flat), np.int32, len(flat))
        return cls(list(places), numbers, np.concatenate([[0], np.cumsum(orders)]), counts, t)

    @property
    def orders(self) -> Int64s:
        """How many words each n-gram has, int64 [n]."""
        return np.diff(self.offsets)

    def text(self, i: int) -> str:
        """The words of n-gram i, joined by spaces."""
        return " ".join(self.words[number] for number in self.numbers[self.offsets[i] : self.offsets[i + 1]])

    def texts(self) -> list[str]:
        """Of every n-gram, its words joined by spaces."""
        ends, letters = take_strings(pack_strings([f"{word} " for word in self.words]), self.numbers)
        texts = PackedStrings(ends[self.offsets], letters)
        return [text[:-1] for text in unpack_strings(texts)]

    def chosen(self, keep: npt.NDArray[np.bool_]) -> NGrams:
        """Some of the n-grams: `keep` bool [n]. The list of words stays as it is."""
        orders = self.orders
        offsets = np.concatenate([[0], np.cumsum(orders[keep])])
        return NGrams(self.words, self.numbers[np.repeat(keep, orders)], offsets, self.counts[keep], self.t[keep])


NO_NGRAMS = NGrams.of_texts([], np.zeros(0, np.int64), np.zeros(0, np.float64))
