"""What a check is given, and what comes of it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

Status = Literal["PASS", "FAIL", "SKIPPED"]
Figures = dict[str, Any]


@dataclass(frozen=True)
class Setup:
    """What a check is given.

    Attributes:
        folder: for its files; the checks share it, so that one can read what another has made.
        quick: whether sizes are those that a CPU computes in seconds.
        limit: seconds after which the check is ended.
    """

    folder: Path
    quick: bool
    limit: int


@dataclass(frozen=True)
class Passed:
    """What a check returns: a line for the table, and figures that JSON can represent."""

    summary: str
    figures: Figures = field(default_factory=dict)


class Failed(Exception):
    """Raised by a check that has found a fault; `figures` may show it."""

    def __init__(self, reason: str, figures: Figures | None = None) -> None:
        super().__init__(reason)
        self.figures = figures or {}


class Skipped(Exception):
    """Raised by a check that cannot be made here, with the reason."""


@dataclass(frozen=True)
class Result:
    """The result of a check.

    Attributes:
        name: of the check.
        reason: why it failed or was skipped, or what it found; one line.
        seconds: that it took.
        figures: all that it measured.
    """

    name: str
    status: Status
    reason: str
    seconds: float
    figures: Figures = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return the attributes by name."""
        return asdict(self)


def require(condition: bool, reason: str, figures: Figures | None = None) -> None:
    """Raise Failed with the reason unless the condition holds."""
    if not condition:
        raise Failed(reason, figures)
