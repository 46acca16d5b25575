"""Checks of single settings: each failure is one line that names the key."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any

from reader.errors import InputError


def require(condition: bool, key: str, message: str) -> None:
    """Raise InputError `key: message` unless the condition holds."""
    if not condition:
        raise InputError(f"{key}: {message}")


def require_positive(config: Any, section: str, *keys: str) -> None:
    """Raise InputError unless these settings of a section are positive, or null if their type allows it."""
    types = {each.name: str(each.type) for each in fields(config)}
    for key in keys:
        value, may_be_null = getattr(config, key), "None" in types[key]
        is_valid = (may_be_null and value is None) or value > 0
        require(is_valid, f"{section}.{key}", f"must be positive{' or null' * may_be_null}")


def require_finite(config: Any, section: str) -> None:
    """Raise InputError if a float field of a section is infinite or NaN."""
    for key, value in vars(config).items():
        require(not isinstance(value, float) or math.isfinite(value), f"{section}.{key}", f"{value} is not finite")
