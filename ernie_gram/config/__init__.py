"""Settings; and checks of single ones, whose failure is one line that names the key."""

from __future__ import annotations

import math
from dataclasses import fields
from numbers import Integral
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


def check_counts(**numbers: object) -> None:
    """Raise InputError, which names the argument, for values other than whole numbers from 1."""
    for name, number in numbers.items():
        is_valid = isinstance(number, Integral) and not isinstance(number, bool) and int(number) > 0
        require(is_valid, name, f"{number!r}: give a whole number from 1")
