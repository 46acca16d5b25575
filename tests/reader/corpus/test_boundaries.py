"""Boundaries equal the best of all possible segmentations."""

from __future__ import annotations

import random
from itertools import pairwise, product

import numpy as np

from reader.corpus.boundaries import build_trie, cut_lines
from reader.tokenization.word_kernel import LINE_END


def brute_force(words: list[int], lexicon: set[tuple[int, ...]]) -> list[int]:
    """Return the segment lengths of the best segmentation: fewest segments, then longest first segments."""
    segmentations = []
    for is_boundary in product([False, True], repeat=max(0, len(words) - 1)):
        starts = [0, *(i + 1 for i, cut in enumerate(is_boundary) if cut), len(words)]
        segments = [tuple(words[a:b]) for a, b in pairwise(starts) if b > a]
        if all(len(segment) == 1 or segment in lexicon for segment in segments):
            segmentations.append([len(segment) for segment in segments])
    return min(segmentations, key=lambda lengths: (len(lengths), [-length for length in lengths]))


def test_result_is_the_best_of_all_segmentations() -> None:
    rng = random.Random(1)
    for _ in range(400):
        alphabet = rng.randint(2, 5)
        lexicon = sorted({tuple(rng.choices(range(alphabet), k=rng.randint(1, 4))) for _ in range(rng.randint(1, 14))})
        trie_words = np.array([word for ngram in lexicon for word in ngram], np.int32)
        trie = build_trie(trie_words, np.cumsum([0, *map(len, lexicon)]), alphabet)
        # One word is not in the trie. Every word has one token, whose ID equals the word ID.
        pieces = np.arange(alphabet + 1, dtype=np.int32)
        lines = [rng.choices(range(alphabet + 1), k=rng.randint(0, 10)) for _ in range(3)]
        stream = np.array([word for line in lines for word in [*line, LINE_END]], np.int32)
        cut = cut_lines(stream, trie, np.arange(alphabet + 2, dtype=np.int64), pieces, 100)
        for line, words in enumerate(lines):
            expected, start = [], 0
            for length in brute_force(words, set(lexicon)):
                segment = tuple(words[start : start + length])
                expected.append(100 + lexicon.index(segment) if segment in lexicon else segment[0])
                start += length
            assert cut.units[cut.starts[line] : cut.starts[line + 1]].tolist() == expected
