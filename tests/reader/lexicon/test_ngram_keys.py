"""Counting with keys and entries gives the same result as plain counting."""

from __future__ import annotations

from collections import Counter

import numpy as np

from reader.lexicon.ngram_keys import count_runs, extend_prefixes, merge_entries, ngram_keys
from reader.system.hash_tables import build_key_table


def test_counts_of_trigrams_equal_plain_counting() -> None:
    random = np.random.default_rng(0)
    words = random.integers(-1, 6, 3000).astype(np.int32)
    expected = Counter(tuple(words[i : i + 3].tolist()) for i in range(2998) if (words[i : i + 3] >= 0).all())
    # With two bits per count, the counts of a key are split over several entries, which must be merged again.
    keys = ngram_keys(words, words, 2, 3)
    keys.sort()
    pairs, pair_counts = merge_entries(count_runs(keys, 2), 2, 1)
    pairs, pair_counts = pairs[pair_counts >= 60], pair_counts[pair_counts >= 60]
    prefixes = extend_prefixes(words, words, 2, 3, build_key_table(pairs))
    keys = ngram_keys(prefixes, words, 3, 3)
    keys.sort()
    triples, counts = merge_entries(count_runs(keys, 2), 2, 3)
    found = {(*divmod(int(pairs[int(key) >> 3]), 8), int(key) & 7): n for key, n in zip(triples, counts, strict=True)}
    kept = {divmod(int(pair), 8) for pair in pairs}
    assert 0 < len(kept) < 36
    assert found == {w: n for w, n in expected.items() if n >= 3 and w[:2] in kept and w[1:] in kept}
