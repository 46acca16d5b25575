"""A file of batches that one process writes and another, without this project, reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

Batch = Mapping[str, np.ndarray]


def write_batches(path: Path, parts: Mapping[str, Sequence[Batch]]) -> None:
    """Write the batches of each part, such as "train". No name may contain a slash."""
    np.savez(
        path,
        **{
            f"{part}/{number}/{name}": array
            for part, batches in parts.items()
            for number, batch in enumerate(batches)
            for name, array in batch.items()
        },
    )


def read_batches(path: Path) -> dict[str, list[dict[str, np.ndarray]]]:
    """Return what `write_batches` has written."""
    parts: dict[str, list[dict[str, np.ndarray]]] = {}
    with np.load(path) as archive:
        for key, array in archive.items():
            part, number, name = key.split("/")
            batches = parts.setdefault(part, [])
            batches += [{} for _ in range(int(number) + 1 - len(batches))]
            batches[int(number)][name] = array
    return parts
