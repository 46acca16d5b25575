"""Segment runs of Han characters into words.

A run is a sequence of consecutive Han characters. The segmenter has no influence on other text.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from reader.tables.string_table import PackedStrings, pack_strings, unpack_strings

# The available segmenters. The last two need no dictionary.
SEGMENTERS = ("jieba", "rjieba", "char", "space")

CutFunction = Callable[[str], list[str]]


def segmenter(name: str) -> CutFunction:
    """Return the function that splits a run of Han characters into words.

    jieba: a compiled implementation of jieba with its dictionary; the result is equal to that of jieba.
    rjieba: an implementation of jieba in Rust, which sometimes decides differently between almost equal alternatives.
    char: every character is a word.
    space: every run is a word, for text whose words are already separated by spaces.
    """
    if name == "char":
        return list
    if name == "space":
        return lambda run: [run]
    # The bytearray makes the array writable. Numba would compile the kernel a second time for a read-only array.
    return lambda run: unpack_strings(cut_runs(name, np.frombuffer(bytearray(f"{run}\n".encode()), np.uint8)))[:-1]


def cut_runs(name: str, text: npt.NDArray[np.uint8]) -> PackedStrings:
    """Return the words of several runs of Han characters, with "" after the last word of each run.

    Args:
        name: a segmenter that has a dictionary.
        text: uint8, the runs in UTF-8, each followed by a line feed.
    """
    # The segmenters are imported here because they load slowly and most text does not need them.
    if name == "rjieba":
        import rjieba

        return pack_strings(["" if word == "\n" else word for word in rjieba.cut(text.tobytes().decode("utf-8"))])
    from reader.tokenization import jieba_kernel

    return jieba_kernel.cut_runs(text, jieba_kernel.load_tables())
