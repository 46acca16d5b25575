"""What keeps a format from holding a model."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Obstacle:
    """A part of a model that a format cannot hold, with the reason, in one line.

    Attributes:
        reason: what cannot be held, and why.
        is_loss: whether everything else can be written without it, if the user accepts the loss. Otherwise nothing can.
    """

    reason: str
    is_loss: bool = True


def losses(reasons: Iterable[str]) -> list[Obstacle]:
    """Return an obstacle that the user may accept for each reason."""
    return [Obstacle(reason) for reason in reasons]
