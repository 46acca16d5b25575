"""The rank and the device of this process, without the set-up in world.py."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ernie_gram.paddle_private import Place


@dataclass(frozen=True)
class World:
    """This process in its job.

    Attributes:
        rank: number of this process, 0..size - 1.
        size: number of processes.
        place: the device on which this process computes.
    """

    rank: int
    size: int
    place: Place

    @property
    def is_first(self) -> bool:
        """Whether this is rank 0, which writes the log and the checkpoints."""
        return self.rank == 0
