"""The words and l-grams kept so far, order by order, and the scores of the newest order (Algorithm 1)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from reader.lexicon.counting_stages import CountNgrams, NgramCounts, WordCounts
from reader.lexicon.lexicon_file import NGrams
from reader.lexicon.ngram_keys import KeyLayout, key_layout
from reader.lexicon.t_test import t_statistic
from reader.system.arrays import Bools, Float64s, Int64s, offsets_of
from reader.system.hash_tables import (
    KeyTable,
    PackedStrings,
    build_key_table,
    empty_table,
    find_or_add_strings,
    take_strings,
    unpack_strings,
)
from reader.tokenization.basic_tokenizer import is_han


class Scores(NamedTuple):
    """L-grams with their scores: words, word IDs, int64 [n, l]; counts, int64 [n]; t, float64 [n]."""

    words: Int64s
    counts: Int64s
    t: Float64s


class Candidates:
    """The kept words, and the kept l-grams of orders 2 to the newest order; initially only words (order 1).

    Attributes:
        vocabulary: the words; a word ID is an index into it.
    """

    def __init__(self, vocabulary: WordCounts) -> None:
        self.vocabulary = vocabulary
        self._word_table = find_or_add_strings(empty_table(), vocabulary.strings)[0]
        self._ngrams: list[NgramCounts] = []
        self._layouts: list[KeyLayout] = []
        self._tables: list[KeyTable] = []

    def next_stage(self) -> CountNgrams:
        """Return the stage that counts the l-grams of the next order.

        Raises InputError if there are too many words and l-grams for 64-bit keys.
        """
        num_words = len(self.vocabulary.counts)
        num_prefixes = len(self._ngrams[-1].keys) if self._ngrams else num_words
        layouts = [*self._layouts, key_layout(num_prefixes, num_words)]
        self._tables += [build_key_table(ngrams.keys) for ngrams in self._ngrams[len(self._tables) :]]
        return CountNgrams(len(layouts) + 1, self._word_table, list(self._tables), layouts)

    def add(self, stage: CountNgrams, ngrams: NgramCounts) -> None:
        """Add the l-grams that a stage counted; its order becomes the newest."""
        self._layouts = stage.layouts
        self._ngrams.append(ngrams)

    def scores(self, min_count: int, totals: Int64s) -> Scores:
        """Score the l-grams of the newest order that occur at least `min_count` times.

        For order 1, these are the words of several Han characters; with p' = 0, ranking by t is ranking by count.

        Args:
            totals: int64 [MAX_ORDER], N_l.
        """
        total, unigram_total = int(totals[len(self._ngrams)]), int(totals[0])
        unigrams = self.vocabulary.counts
        if not self._ngrams:
            rows = np.flatnonzero(_is_han_word(self.vocabulary.strings) & (unigrams >= min_count))
            zeros = np.zeros((len(rows), 1), np.int64)
            return Scores(rows[:, None], unigrams[rows], t_statistic(unigrams[rows], total, zeros, 1))
        rows = np.flatnonzero(self._ngrams[-1].counts >= min_count)
        words, counts = self._word_ids(rows), self._ngrams[-1].counts[rows]
        return Scores(words, counts, t_statistic(counts, total, unigrams[words], unigram_total))

    def best(self, scores: Scores, k: int, kth_score: float | None) -> Scores:
        """Return the k l-grams with the largest t, in descending order of t; ties are ordered by the words.

        Args:
            kth_score: the k-th largest t, or None if there are fewer than k (see t_test.kth_largest).
        """
        indices = np.flatnonzero(scores.t >= (-np.inf if kth_score is None else kth_score))
        words, counts, t = scores.words[indices], scores.counts[indices], scores.t[indices]
        distinct, inverse = np.unique(words, return_inverse=True)
        texts = np.array(unpack_strings(take_strings(self.vocabulary.strings, distinct)), np.object_)
        ranks = np.argsort(np.argsort(texts))[np.reshape(inverse, words.shape)]
        order = np.lexsort((*ranks.T[::-1], -t))[:k]
        return Scores(words[order], counts[order], t[order])

    def to_ngrams(self, parts: list[Scores]) -> NGrams:
        """Concatenate scored l-grams of several orders, with their words as text."""
        distinct, word_ids = np.unique(np.concatenate([part.words.ravel() for part in parts]), return_inverse=True)
        orders = np.repeat([part.words.shape[1] for part in parts], [len(part.t) for part in parts])
        return NGrams(
            unpack_strings(take_strings(self.vocabulary.strings, distinct)),
            word_ids.astype(np.int32),
            offsets_of(orders),
            np.concatenate([part.counts for part in parts]),
            np.concatenate([part.t for part in parts]),
        )

    def _word_ids(self, rows: Int64s) -> Int64s:
        """Return the word IDs of some l-grams of the newest order, int64 [rows, l]."""
        columns: list[Int64s] = []
        prefixes = rows
        for ngrams, layout in zip(reversed(self._ngrams), reversed(self._layouts), strict=True):
            keys = ngrams.keys[prefixes]
            columns.append((keys & np.uint64((1 << layout.word_bits) - 1)).astype(np.int64))
            prefixes = (keys >> np.uint64(layout.word_bits)).astype(np.int64)
        return np.column_stack([prefixes, *reversed(columns)])


def _is_han_word(words: PackedStrings) -> Bools:
    """Return whether each word consists of several Han characters; bool [n]."""
    return np.fromiter(
        (len(word) > 1 and is_han(word[0]) for word in unpack_strings(words)), bool, len(words.offsets) - 1
    )
