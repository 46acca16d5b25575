"""Numbers with nouns in messages."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """Return "1 row", "2 rows" or "12,345 rows" for the noun "row"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
