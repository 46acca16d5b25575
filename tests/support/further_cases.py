"""Parameters of which `make test` takes only some: the others are further cases of the same, for `make data-test`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

FURTHER = pytest.mark.needs("EVERY_CASE")


def only(chosen: Iterable[str], cases: Iterable[str]) -> list[Any]:
    """Return parameters for pytest: the chosen cases, and the others as further ones."""
    chosen = [*chosen]
    return [case if case in chosen else pytest.param(case, marks=FURTHER) for case in cases]
