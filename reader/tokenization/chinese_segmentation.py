"""Segment runs of Han characters into words.

A run is a sequence of consecutive Han characters. The segmenter has no influence on other text.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from reader.tables.string_table import PackedStrings

# The available segmenters. The last two need no dictionary.
SEGMENTERS = ("jieba", "char", "space")

CutFunction = Callable[[str], list[str]]


def segmenter(name: str) -> CutFunction:
    """Return the function that splits a run of Han characters into words.

    jieba: by jieba's rules and dictionary, with the library rjieba. Its words are those of jieba, unless two
        alternatives are equally probable, or a character is outside of the Basic Multilingual Plane.
    char: every character is a word.
    space: every run is a word, for text whose words are already separated by spaces.
    """
    if name == "char":
        return list
    if name == "space":
        return lambda run: [run]
    # Imported here because its dictionary loads slowly, and most text does not need it.
    import rjieba

    cut: CutFunction = rjieba.cut
    return cut


def cut_runs(text: npt.NDArray[np.uint8]) -> PackedStrings:
    """Return jieba's words of several runs of Han characters, with "" after the last word of each run.

    `text` is uint8: the runs in UTF-8, each followed by a line feed.
    """
    words = segmenter("jieba")(text.tobytes().decode("utf-8"))
    # A line feed is a word of its own, and becomes "".
    joined = np.frombuffer("".join(f"{word}\0" for word in words).encode(), np.uint8)
    is_in_word = (joined != 0) & (joined != ord("\n"))
    return PackedStrings(np.concatenate([[0], np.cumsum(is_in_word)[joined == 0]]), joined[is_in_word])
