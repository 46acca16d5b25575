"""Windows against BERT's loop, the window to which a token belongs against its definition, and tables of tokens."""

from __future__ import annotations

import tracemalloc
from fractions import Fraction

import numpy as np
import pytest

from tasks.kinds import features
from tasks.kinds.features import tokenize, windows_of
from tests.tasks.kinds.tiny import tokenizer


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


def test_every_text_has_its_own_tokens_in_whatever_groups_they_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(features, "GROUP", 2)
    texts, encode = ["a b", "c", "a b", "", "de f", "g", "c", "h i"], tokenizer().encode_batch
    table = tokenize(encode, texts, "starts", "ends")
    for index, expected in enumerate(encode(texts)):
        found = table[index]
        for name in ("ids", "starts", "ends"):
            np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
