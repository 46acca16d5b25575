"""The position of an answer in its context."""

from __future__ import annotations

import random

import pytest

from tasks.layouts.rows import locate


@pytest.mark.parametrize(
    ("start", "expected"),
    [(0, 0), (3, 3), (1, 0), (2, 3), (-1, 0), (99, 6), (5, 6), (4, 3)],
)
def test_the_nearest_occurrence_is_found(start: int, expected: int) -> None:
    assert locate("ab", "ab.ab.ab", start) == expected


def test_an_answer_that_does_not_occur_has_no_position() -> None:
    assert locate("x", "abc", 1) is None
    assert locate("147.0", "147人", -1) is None


def test_any_answer_is_found_where_a_search_at_every_position_finds_it() -> None:
    draw = random.Random(7)
    for _ in range(2000):
        context = "".join(draw.choices("ab", k=draw.randrange(9)))
        text = "".join(draw.choices("ab", k=draw.randrange(1, 4)))
        start = draw.randrange(-1, 12)
        places = [index for index in range(len(context)) if context[index : index + len(text)] == text]
        expected = min(places, key=lambda place: (abs(place - start), place), default=None)
        assert locate(text, context, start) == expected, (text, context, start)
