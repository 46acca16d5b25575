"""CMRC's and DuReader's metrics give scores computed by hand, and the longest common run of an exhaustive search."""

from __future__ import annotations

import random

import pytest

from tasks.metrics.answers import (
    cmrc2018,
    cmrc_normalize,
    cmrc_segments,
    common_run,
    dureader_normalize,
    dureader_robust,
    dureader_segments,
)


@pytest.mark.parametrize(
    ("text", "segments"),
    [
        ("《北京》，2008年", ["北", "京", "2008", "年"]),
        ("iPhone 6s的 A-8", ["iphone", "6s", "的", "a8"]),  # The hyphen is removed, and does not separate.
        ("don't stop。", ["do", "n't", "stop"]),
        ("3.5%", ["3.5", "%"]),
        ("ＡＢＣ１２", ["ａｂｃ１２"]),  # Full width: one word of other text.
        ("…㐀龥龦", ["…㐀", "龥", "龦"]),  # The ellipsis, and ideographs outside U+4E00 to U+9FA5, are other text.
        ("  ", []),
    ],
)
def test_cmrc_segments_chinese_by_character_and_other_text_by_word(text: str, segments: list[str]) -> None:
    assert cmrc_segments(text) == segments


@pytest.mark.parametrize(
    ("text", "segments"),
    [
        ("《北京》，2008 Nian年", ["北", "京", "2008 nian", "年"]),
        ("a=b|c", ["a", "=", "bc"]),
        ("x-y; 3.5…", ["x-y; 3.5…"]),
        ("㐀龦\U00020000x", ["㐀", "龦", "\U00020000", "x"]),
        ("，。", []),
    ],
)
def test_dureader_segments_chinese_by_character_and_keeps_other_text_whole(text: str, segments: list[str]) -> None:
    assert dureader_segments(text) == segments


def test_the_ignored_punctuation_differs() -> None:
    assert cmrc_normalize(" A-B(c)，…… ") == "ab(c)……"
    assert dureader_normalize(" A-B(c)，…… ") == " a-bc…… "


def longest_common_run(a: list[str], b: list[str]) -> int:
    runs = {tuple(b[i:j]) for i in range(len(b)) for j in range(i + 1, len(b) + 1)}
    return max((j - i for i in range(len(a)) for j in range(i, len(a) + 1) if tuple(a[i:j]) in runs), default=0)


def test_the_longest_common_run_is_that_of_an_exhaustive_search() -> None:
    draw = random.Random(3)
    for _ in range(200):
        a, b = [draw.choices("甲乙丙", k=draw.randint(1, 9)) for _ in range(2)]
        assert common_run(a, b) == longest_common_run(a, b)
    assert common_run([], []) == 0


GOLD = {"1": ["范廷颂", "保禄·范廷颂枢机"], "2": ["1963年"], "3": ["河内"], "4": ["apple pie"]}
TEXTS = {"1": "范廷颂枢机", "2": "《1963年》", "4": "apple"}


def test_cmrc_takes_the_best_answer_and_counts_a_missing_one_as_0() -> None:
    f1 = [2 * 5 / (5 + 7), 1, 0, 2 * 1 / (1 + 2)]
    expected = {"f1": 100 * sum(f1) / 4, "em": 25, "total": 4, "skipped": 1}
    expected["average"] = (expected["f1"] + expected["em"]) / 2
    assert cmrc2018(GOLD, TEXTS) == pytest.approx(expected)


def test_dureader_compares_other_text_as_a_whole() -> None:
    # "apple" and "apple pie" are one segment each, and differ.
    f1 = [2 * 5 / (5 + 7), 1, 0, 0]
    expected = {"f1": 100 * sum(f1) / 4, "em": 25, "total": 4, "skipped": 1}
    assert dureader_robust(GOLD, TEXTS) == pytest.approx(expected)


def test_an_answer_of_punctuation_is_an_exact_match_with_f1_0() -> None:
    assert cmrc2018({"1": ["，"]}, {"1": "。"}) == {"average": 50, "f1": 0, "em": 100, "total": 1, "skipped": 0}
    assert dureader_robust({"1": ["，"]}, {"1": "。"}) == {"f1": 0, "em": 100, "total": 1, "skipped": 0}
