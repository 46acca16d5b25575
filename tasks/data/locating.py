"""The position of an answer in its context, if the position in the file may be wrong."""

from __future__ import annotations


def locate(text: str, context: str, start: int) -> int | None:
    """Return where `text` occurs in `context`: at `start`, else nearest to it; None if it does not occur.

    Of two equally near occurrences the first is returned. A `start` of -1 means that the position is unknown (CMRC,
    DuReader); the first occurrence is then the nearest.
    """
    if start >= 0 and context.startswith(text, start):
        return start
    before = context.rfind(text, 0, max(0, start) + len(text))
    after = context.find(text, max(0, start))
    found = [position for position in (before, after) if position >= 0]
    return min(found, key=lambda position: abs(position - start), default=None)
