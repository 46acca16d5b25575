"""Where the sequences of a batch are among the rows of the context: with padding behind each, or packed without it.

Shape letters: B sequences, L slots, T rows that are not padding.
"""

from __future__ import annotations

from dataclasses import dataclass

import paddle


@dataclass(frozen=True)
class Sequences:
    """The places of sequences among rows.

    Attributes:
        starts: the first row of each sequence, and the number of rows, int64 [B + 1].
        lengths: rows of each sequence that are not padding, int64 [B].
    """

    starts: paddle.Tensor
    lengths: paddle.Tensor


def padded(lengths_B: paddle.Tensor, length: paddle.Tensor) -> Sequences:
    """Return the places of sequences with L rows each."""
    return Sequences(paddle.arange(paddle.shape(lengths_B)[0] + 1) * length, lengths_B)


def packed(lengths_B: paddle.Tensor) -> Sequences:
    """Return the places of sequences without padding."""
    return Sequences(paddle.concat([paddle.zeros([1], "int64"), paddle.cumsum(lengths_B)]), lengths_B)


def real_slots(lengths_B: paddle.Tensor, length: paddle.Tensor) -> paddle.Tensor:
    """Return the slots that are not padding, int64 [T] as b * L + l."""
    return paddle.nonzero(_is_real(lengths_B, length)).flatten()


def packed_rows(lengths_B: paddle.Tensor, length: paddle.Tensor) -> paddle.Tensor:
    """Return the row that each slot has without padding, int64 [B * L]; that of padding has no meaning."""
    return paddle.cumsum(_is_real(lengths_B, length).astype("int64")) - 1


def _is_real(lengths_B: paddle.Tensor, length: paddle.Tensor) -> paddle.Tensor:
    return (paddle.arange(length).unsqueeze(0) < lengths_B.unsqueeze(1)).flatten()
