"""The position of an answer in its context."""

from __future__ import annotations

import random

from tasks.layouts.rows import locate


def test_any_answer_is_found_where_a_search_at_every_position_finds_it() -> None:
    draw = random.Random(7)
    for _ in range(2000):
        context = "".join(draw.choices("ab", k=draw.randrange(9)))
        text = "".join(draw.choices("ab", k=draw.randrange(1, 4)))
        start = draw.randrange(-1, 12)
        places = [index for index in range(len(context)) if context[index : index + len(text)] == text]
        expected = min(places, key=lambda place: (abs(place - start), place), default=None)
        assert locate(text, context, start) == expected, (text, context, start)
