"""The characters that a vocabulary is learnt with: the same choice for every kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable


def character_counts(texts: Iterable[str]) -> Counter[str]:
    """How often each character but the space occurs."""
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(text)
    del counts[" "]
    return counts


def alphabet(counts: Counter[str], size: int) -> list[str]:
    """The most frequent characters, at most a quarter of `size` tokens, in a fixed order.

    Equally frequent ones stay or go together.
    """
    most = size // 4
    ranked = sorted(counts, key=lambda character: (-counts[character], character))
    if len(ranked) > most:
        bound = counts[ranked[most]]
        ranked = [character for character in ranked if counts[character] > bound]
    return ranked
