"""Windows of a text that is longer than an input.

A token may be in several windows. It belongs to the window in which it has the most context, as in BERT's code for
SQuAD: the window that maximizes min(tokens to its left, tokens to its right) + 0.01 * length; the first of equal ones.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from reader.system.arrays import Int64s

LENGTH_WEIGHT = 0.01


class Windows(NamedTuple):
    """Windows of one text or of several; all arrays are int64 and have one number for each window.

    starts, lengths: the tokens [start, start + length) of the text; own_starts, own_stops: the tokens that belong to
    the window, numbered in the text: [own_start, own_stop).
    """

    starts: Int64s
    lengths: Int64s
    own_starts: Int64s
    own_stops: Int64s

    def take(self, which: npt.NDArray[np.bool_] | slice) -> Windows:
        """Return the windows that an index of the arrays selects."""
        return Windows(*(numbers[which] for numbers in self))


@lru_cache(maxsize=4096)
def windows_of(num_tokens: int, room: int, stride: int) -> Windows:
    """Return the windows of a text of `num_tokens` tokens, at least one, each of at most `room` > 0 tokens.

    The beginnings of two windows are `stride` > 0 tokens apart, or less, so that no token is left out.
    """
    step = min(stride, room)
    count = 1 + max(0, -(-(num_tokens - room) // step))
    starts = step * np.arange(count)
    lengths = np.minimum(room, num_tokens - starts)
    # near: int64 [tokens, windows that may contain a token], ascending; the last window may be repeated.
    tokens = np.arange(num_tokens)[:, np.newaxis]
    first = np.maximum(0, (tokens - room) // step + 1)
    near = np.minimum(first + np.arange(room // step + 2), np.minimum(tokens // step, count - 1))
    left = tokens - starts[near]
    right = lengths[near] - 1 - left
    # Compared as whole numbers, which have no rounding errors: argmax returns the first of equal ones.
    context = np.round(np.minimum(left, right) / LENGTH_WEIGHT).astype(np.int64) + lengths[near]
    best = np.where(right >= 0, context, np.iinfo(np.int64).min).argmax(1)
    owners = near[np.arange(num_tokens), best]
    # The owners are in ascending order, so each window owns consecutive tokens.
    return Windows(
        starts,
        lengths,
        np.searchsorted(owners, np.arange(count), "left"),
        np.searchsorted(owners, np.arange(count), "right"),
    )


def windows_of_texts(num_tokens: Int64s, rooms: Int64s, stride: int) -> tuple[Int64s, Windows]:
    """Return the windows of several texts, in their order; and int64, the index of the text of each window."""
    found = [windows_of(*sizes, stride) for sizes in zip(num_tokens.tolist(), rooms.tolist(), strict=True)]
    text_of = np.repeat(np.arange(len(found)), [len(windows.starts) for windows in found])
    nothing = np.zeros((len(Windows._fields), 0), np.int64)
    return text_of, Windows(*np.concatenate([nothing, *map(np.stack, found)], axis=1))
