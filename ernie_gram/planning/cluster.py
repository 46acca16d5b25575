"""The cluster that a run is planned for. Nothing here imports Paddle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Speeds(NamedTuple):
    """Speeds of one process, as in Cluster; None where they are unknown."""

    peak: float | None = None
    utilisation: float | None = None
    bandwidth: float | None = None


@dataclass(frozen=True)
class Cluster:
    """What a run is planned for.

    Attributes:
        ranks: number of processes, one per GPU.
        memory: bytes of memory per process; None if unknown.
        peak: operations per second that a device reaches in large matrix products.
        utilisation: share of the peak that a step reaches, without the exchanges.
        bandwidth: bytes per second that one process sends; None if unknown.
    """

    ranks: int
    peak: float
    utilisation: float
    memory: float | None = None
    bandwidth: float | None = None
