"""Cutting runs of Han characters into words; all other text is split alike, whatever the segmenter."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from reader.tables.string_table import Strings, packed, unpacked

# How the words of Han characters are found. The last two need no dictionary.
SEGMENTERS = ("jieba", "rjieba", "char", "space")

Cut = Callable[[str], list[str]]


def segmenter(name: str) -> Cut:
    """The function that cuts a run of Han characters into words.

    jieba: its dictionary and algorithm, compiled, and equal to it; rjieba: the same in Rust, which parts near ties
    otherwise here and there; char: every character is a word; space: a run is one word, for text whose words are
    parted by spaces already.
    """
    if name == "char":
        return list
    if name == "space":
        return lambda run: [run]
    # A bytearray: for what cannot be written to, Numba would compile the kernel once more.
    return lambda run: unpacked(cut_runs(name, np.frombuffer(bytearray(f"{run}\n".encode()), np.uint8)))[:-1]


def cut_runs(name: str, text: npt.NDArray[np.uint8]) -> Strings:
    """The words of runs of Han characters, in UTF-8, each run followed by a line feed; "" where a run ends.

    `name` is a segmenter that has a dictionary.
    """
    # Most text needs none, and they take a while to load.
    if name == "rjieba":
        import rjieba

        return packed(["" if word == "\n" else word for word in rjieba.cut(text.tobytes().decode("utf-8"))])
    from reader.tokenization import jieba_kernel

    return jieba_kernel.cut_runs(text, jieba_kernel.load_tables())
