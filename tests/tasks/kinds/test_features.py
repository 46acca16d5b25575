"""Windows against BERT's loop, and the window to which a token belongs against its definition."""

from __future__ import annotations

import tracemalloc
from fractions import Fraction

from tasks.kinds.features import windows_of


def reference_windows(num_tokens: int, room: int, stride: int) -> list[tuple[int, int]]:
    windows, start = [], 0
    while True:
        length = min(num_tokens - start, room)
        windows.append((start, length))
        if start + length == num_tokens:
            return windows
        start += min(length, stride)


def reference_owner(token: int, windows: list[tuple[int, int]]) -> int:
    best = None
    for index, (start, length) in enumerate(windows):
        if start <= token < start + length:
            score = min(token - start, start + length - 1 - token) + Fraction(length, 100)
            if best is None or score > best[0]:
                best = (score, index)
    assert best is not None
    return best[1]


def test_windows_are_those_of_bert_and_every_token_belongs_to_exactly_one() -> None:
    for num_tokens in [*range(40), 137]:
        for room in (1, 2, 5, 8, 130):
            for stride in (1, 2, 3, 5, 9, 128):
                windows = windows_of(num_tokens, room, stride)
                expected = reference_windows(num_tokens, room, stride)
                assert [window[:2] for window in windows] == expected
                owners = [reference_owner(token, expected) for token in range(num_tokens)]
                found = [
                    index for index, window in enumerate(windows) for _ in range(window.own_start, window.own_stop)
                ]
                assert found == owners


def test_the_memory_for_a_long_text_does_not_grow_with_the_square_of_its_length() -> None:
    tracemalloc.start()
    windows_of(20_000, 30, 8)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50e6  # windows x tokens are 50 million numbers, of 8 bytes
