"""What was kept of a text's words and n-grams, order after order, and the scores of the newest (Algorithm 1)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from reader.errors import InputError
from reader.lexicon.counting import KeyTable, Packing, key_table, packing, t_statistic
from reader.lexicon.counting_stages import CountOrder, Grams, Words
from reader.lexicon.ngrams import NGrams
from reader.tables.string_table import PackedStrings, empty_table, find_or_add_strings, take_strings, unpack_strings
from reader.tokenization.basic_tokenizer import is_han

Int64s = npt.NDArray[np.int64]
Float64s = npt.NDArray[np.float64]


class Scores(NamedTuple):
    """L-grams with their scores: words, int64 [n, l]; counts, int64 [n]; t, float64 [n]."""

    words: Int64s
    counts: Int64s
    t: Float64s


class Kept:
    """The words that were kept, and of the orders 2 to l the l-grams; it begins with l = 1.

    Attributes:
        vocabulary: the words; n-grams know them by their places.
    """

    def __init__(self, vocabulary: Words) -> None:
        self.vocabulary = vocabulary
        self._table = find_or_add_strings(empty_table(), vocabulary.strings)[0]
        self._grams: list[Grams] = []
        self._packings: list[Packing] = []
        self._tables: list[KeyTable] = []

    def next_stage(self) -> CountOrder:
        """What counts the l-grams of the next order; raises InputError if so many cannot be numbered."""
        words = len(self.vocabulary.counts)
        heads = len(self._grams[-1].keys) if self._grams else words
        try:
            packings = [*self._packings, packing(heads, words)]
        except ValueError as error:
            raise InputError(f"--top: {error}; ask for fewer n-grams") from error
        self._tables += [key_table(grams.keys) for grams in self._grams[len(self._tables) :]]
        return CountOrder(len(packings) + 1, self._table, list(self._tables), packings)

    def add(self, stage: CountOrder, grams: Grams) -> None:
        """Go on to the order of a stage, with what it counted."""
        self._packings = stage.packings
        self._grams.append(grams)

    def scores(self, at_least: int, totals: Int64s) -> Scores:
        """The l-grams of the newest order that occur so often; `totals`: N_l, int64 [MAX_ORDER].

        Of order 1, words of several Han characters; with p' = 0 their t is in the order of their counts.
        """
        total, unigram_total = int(totals[len(self._grams)]), int(totals[0])
        unigrams = self.vocabulary.counts
        if not self._grams:
            rows = np.flatnonzero(_is_han_word(self.vocabulary.strings) & (unigrams >= at_least))
            none = np.zeros((len(rows), 1), np.int64)
            return Scores(rows[:, None], unigrams[rows], t_statistic(unigrams[rows], total, none, 1))
        rows = np.flatnonzero(self._grams[-1].counts >= at_least)
        words, counts = self._words_of(rows), self._grams[-1].counts[rows]
        return Scores(words, counts, t_statistic(counts, total, unigrams[words], unigram_total))

    def best(self, scores: Scores, k: int, last: float | None) -> Scores:
        """The k l-grams of the largest t, best first; equal scores are ordered by their words.

        Args:
            last: the k-th largest t, or None if there are fewer (see counting.kth_largest).
        """
        places = np.flatnonzero(scores.t >= (-np.inf if last is None else last))
        words, counts, t = scores.words[places], scores.counts[places], scores.t[places]
        used, places = np.unique(words, return_inverse=True)
        texts = np.array(unpack_strings(take_strings(self.vocabulary.strings, used)), np.object_)
        ranks = np.argsort(np.argsort(texts))[np.reshape(places, words.shape)]
        order = np.lexsort((*ranks.T[::-1], -t))[:k]
        return Scores(words[order], counts[order], t[order])

    def ngrams(self, parts: list[Scores]) -> NGrams:
        """The l-grams of several orders, one after the other, with their words as text."""
        used, numbers = np.unique(np.concatenate([part.words.ravel() for part in parts]), return_inverse=True)
        orders = np.repeat([part.words.shape[1] for part in parts], [len(part.t) for part in parts])
        return NGrams(
            unpack_strings(take_strings(self.vocabulary.strings, used)),
            numbers.astype(np.int32),
            np.concatenate([[0], np.cumsum(orders)]),
            np.concatenate([part.counts for part in parts]),
            np.concatenate([part.t for part in parts]),
        )

    def _words_of(self, rows: Int64s) -> Int64s:
        """The words of some l-grams of the newest order, int64 [rows, l]."""
        columns: list[Int64s] = []
        heads = rows
        for grams, bits in zip(reversed(self._grams), reversed(self._packings), strict=True):
            keys = grams.keys[heads]
            columns.append((keys & np.uint64((1 << bits.word_bits) - 1)).astype(np.int64))
            heads = (keys >> np.uint64(bits.word_bits)).astype(np.int64)
        return np.column_stack([heads, *reversed(columns)])


def frequent_first(lists: list[Words]) -> Words:
    """Several lists of words as one, by count downwards."""
    counts = np.concatenate([each.counts for each in lists])
    ends = np.cumsum([0, *(each.strings.offsets[-1] for each in lists)])
    offsets = [each.strings.offsets[1:] + end for each, end in zip(lists, ends[:-1], strict=True)]
    joined = PackedStrings(np.concatenate([[0], *offsets]), np.concatenate([each.strings.arena for each in lists]))
    order = np.argsort(-counts, kind="stable")
    return Words(take_strings(joined, order), counts[order])


def _is_han_word(words: PackedStrings) -> npt.NDArray[np.bool_]:
    """Whether each word consists of several Han characters; bool [n]."""
    return np.fromiter(
        (len(word) > 1 and is_han(word[0]) for word in unpack_strings(words)), bool, len(words.offsets) - 1
    )
