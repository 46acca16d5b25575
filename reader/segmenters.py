"""Cutting runs of Han characters into words; all other text is split alike, whatever the segmenter."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cache

# How the words of Han characters are found. The last two need no dictionary.
SEGMENTERS = ("rjieba", "jieba", "char", "space")

Cut = Callable[[str], list[str]]


@cache
def segmenter(name: str) -> Cut:
    """The function that cuts a text of Han characters (and line feeds, which part words) into words.

    rjieba: jieba's dictionary and algorithm in Rust; jieba: the original; char: every character is a word;
    space: a run of Han characters is one word, for text whose words are parted by spaces already.
    """
    if name == "rjieba":
        import rjieba

        return lambda text: list(rjieba.cut(text))
    if name == "jieba":
        import jieba

        jieba.setLogLevel(logging.WARNING)
        return lambda text: list(jieba.cut(text))
    return list if name == "char" else lambda text: [text]
