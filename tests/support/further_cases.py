"""Tests that `make test` leaves to `make data-test`: further cases, which take long, of what shorter tests prove."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

FURTHER = pytest.mark.needs("EVERY_CASE")


def only(chosen: Iterable[Any], cases: Iterable[Any]) -> list[Any]:
    """Return parameters for pytest: the chosen cases, and the others as further ones."""
    chosen = [*chosen]
    return [case if case in chosen else pytest.param(case, marks=FURTHER) for case in cases]
