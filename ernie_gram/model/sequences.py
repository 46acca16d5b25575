"""The layouts of the rows of an encoder's context: one row per slot, or packed without padding.

Shape letters: B sequences, L slots of each, E or H numbers of a row, M slots.
"""

from __future__ import annotations

from dataclasses import dataclass

import paddle


@dataclass(frozen=True)
class Places:
    """The places of sequences among rows, for fused attention on a CPU.

    Attributes:
        starts: the first row of each sequence, and the number of rows, int64 [B + 1].
        lengths: rows of each sequence that are not padding, int64 [B].
    """

    starts: paddle.Tensor
    lengths: paddle.Tensor


class SlotRows:
    """A row for each slot, [B, L, E]; `places` is for fused attention, or None without it."""

    def __init__(self, lengths_B: paddle.Tensor, length: paddle.Tensor, fused: bool) -> None:
        self.places = Places(paddle.arange(paddle.shape(lengths_B)[0] + 1) * length, lengths_B) if fused else None

    def of(self, slots_BLE: paddle.Tensor) -> paddle.Tensor:
        """Return the rows, float32 [B, L, E], of the slots' embeddings [B, L, E]."""
        return slots_BLE

    def numbers(self, slots_M: paddle.Tensor) -> paddle.Tensor:
        """Return the numbers of the rows, int64 [M], of slots b * L + l, none of them padding."""
        return slots_M

    def slots(self, rows: paddle.Tensor) -> paddle.Tensor:
        """Return the rows [B, L, H] in the order of the slots, [B * L, H]."""
        return rows.flatten(0, 1)


class PackedRows(SlotRows):
    """The slots that are not padding, T of all sequences together: [1, T, E]; for fused attention."""

    def __init__(self, lengths_B: paddle.Tensor, length: paddle.Tensor) -> None:
        starts = paddle.concat([paddle.zeros([1], "int64"), paddle.cumsum(lengths_B)])
        self.places = Places(starts, lengths_B)
        self._is_real = (paddle.arange(length).unsqueeze(0) < lengths_B.unsqueeze(1)).flatten()
        self._real = paddle.nonzero(self._is_real).flatten()

    def of(self, slots_BLE: paddle.Tensor) -> paddle.Tensor:
        return paddle.gather(slots_BLE.flatten(0, 1), self._real).unsqueeze(0)

    def numbers(self, slots_M: paddle.Tensor) -> paddle.Tensor:
        return paddle.gather(paddle.cumsum(self._is_real.astype("int64")) - 1, slots_M)

    def slots(self, rows: paddle.Tensor) -> paddle.Tensor:
        """Return the rows in the order of the slots, [B * L, H]; those of padding are 0."""
        every = paddle.zeros([paddle.shape(self._is_real)[0], rows.shape[-1]])
        return paddle.scatter(every, self._real, rows.flatten(0, 1))
