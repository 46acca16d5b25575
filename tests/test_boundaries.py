"""Fewest segments against all possible cuts."""

from __future__ import annotations

import random
from itertools import pairwise, product

import numpy as np

from reader.boundaries import build_trie, cut_lines, fewest_segments
from reader.counting import NO_WORD


def brute_force(words: list[int], lexicon: set[tuple[int, ...]]) -> list[int]:
    """Lengths of the segments: of all cuts the shortest, of those the one with the longest first segments."""
    cuts = []
    for bounds in product([False, True], repeat=max(0, len(words) - 1)):
        starts = [0, *(i + 1 for i, cut in enumerate(bounds) if cut), len(words)]
        pieces = [tuple(words[a:b]) for a, b in pairwise(starts) if b > a]
        if all(len(piece) == 1 or piece in lexicon for piece in pieces):
            cuts.append([len(piece) for piece in pieces])
    return min(cuts, key=lambda lengths: (len(lengths), [-length for length in lengths]))


def test_every_cut_is_the_best_of_all() -> None:
    draw = random.Random(1)
    for _ in range(400):
        alphabet = draw.randint(2, 5)
        lexicon = sorted(
            {tuple(draw.choices(range(alphabet), k=draw.randint(2, 4))) for _ in range(draw.randint(1, 14))}
        )
        trie = build_trie(lexicon, alphabet)
        # One word more than the trie knows.
        words = draw.choices([*range(alphabet), NO_WORD], k=draw.randint(0, 10))
        lengths, ngrams = np.empty(10, np.int32), np.empty(10, np.int32)
        segments = fewest_segments(np.array(words, np.int32), trie, lengths, ngrams)
        assert lengths[:segments].tolist() == brute_force(words, set(lexicon))
        at = 0
        for length, ngram in zip(lengths[:segments], ngrams[:segments], strict=True):
            assert (ngram == -1) == (length == 1)
            assert length == 1 or lexicon[ngram] == tuple(words[at : at + length])
            at += length


def test_ngrams_are_one_unit_and_words_one_a_piece() -> None:
    # Words 0..3; word 3 has two pieces; the lexicon holds (0 1) and (1 2).
    trie = build_trie([(0, 1), (1, 2)], 3)
    offsets, pieces = np.array([0, 1, 2, 3, 5], np.int64), np.array([10, 11, 12, 13, 14], np.int32)
    words, starts = np.array([3, 0, 1, 2, 0, 1, 1], np.int32), np.array([0, 4, 4, 7], np.int64)
    to_trie = np.array([0, 1, 2, NO_WORD], np.int32)
    units, unit_starts = cut_lines(words, starts, to_trie, trie, offsets, pieces, 100)
    assert units.tolist() == [13, 14, 100, 12, 100, 11]
    assert unit_starts.tolist() == [0, 4, 4, 6]


def test_no_lexicon_no_ngrams() -> None:
    trie = build_trie([], 2)
    offsets, pieces = np.array([0, 1, 2], np.int64), np.array([7, 8], np.int32)
    words, starts = np.array([0, 1, 0], np.int32), np.array([0, 3], np.int64)
    units, _ = cut_lines(words, starts, np.array([0, 1], np.int32), trie, offsets, pieces, 100)
    assert units.tolist() == [7, 8, 7]
