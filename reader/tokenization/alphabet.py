"""The alphabet of a vocabulary in training. All kinds of vocabulary use the same selection of characters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable


def count_characters(texts: Iterable[str]) -> Counter[str]:
    """Return the number of occurrences of each character except the space."""
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(text)
    del counts[" "]
    return counts


def select_alphabet(counts: Counter[str], vocab_size: int) -> list[str]:
    """Return the most frequent characters, at most vocab_size // 4 of them, in descending order of their counts.

    Equally frequent characters are either all included or all left out.
    """
    limit = vocab_size // 4
    ranked = sorted(counts, key=lambda character: (-counts[character], character))
    if len(ranked) > limit:
        first_excluded = counts[ranked[limit]]
        ranked = [character for character in ranked if counts[character] > first_excluded]
    return ranked
