"""Checks of single settings: each failure is one line that names the key."""

from __future__ import annotations

import math
from typing import Any

from reader.errors import InputError


def require(condition: bool, key: str, message: str) -> None:
    """Raise InputError `key: message` unless the condition holds."""
    if not condition:
        raise InputError(f"{key}: {message}")


def require_finite(config: Any, section: str) -> None:
    """Raise InputError if a float field of a section is infinite or NaN."""
    for key, value in vars(config).items():
        require(not isinstance(value, float) or math.isfinite(value), f"{section}.{key}", f"{value} is not finite")
