"""Segment runs of Han characters into words.

A run is a sequence of consecutive Han characters. The segmenter has no influence on other text.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from reader.system.arrays import UInt8s
from reader.tables.string_table import PackedStrings, pack_strings

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


def cut_runs(name: str, text: UInt8s) -> PackedStrings:
    """Return the words of several runs of Han characters, with "" after the last word of each run.

    Args:
        name: of a segmenter.
        text: uint8, the runs in UTF-8, each followed by a line feed.
    """
    if name != "char":
        cut = segmenter(name)
        runs = text.tobytes().decode("utf-8").split("\n")[:-1]
        return pack_strings([word for run in runs for word in (*cut(run), "")])
    # In one step, which is ten times as fast. Words end at the last byte of each character, which no continuation byte
    # follows.
    is_in_word = text != ord("\n")
    ends = np.cumsum(is_in_word)[np.append((text[1:] & 0xC0) != 0x80, True)]
    return PackedStrings(np.concatenate([[0], ends]), text[is_in_word])
