"""Metrics of answers give scores computed by hand, and the best threshold that an exhaustive search finds."""

from __future__ import annotations

import random
from typing import Any

import pytest

from reader.errors import InputError
from tasks.metrics.answers import (
    SQUAD,
    cmrc2018,
    cmrc_normalize,
    cmrc_segments,
    common_run,
    dureader_normalize,
    dureader_robust,
    dureader_segments,
    normalize_answer,
    squad_v1,
    squad_v2,
)


@pytest.mark.parametrize(
    ("made_of", "text", "expected"),
    [
        (normalize_answer, "The  Beatles!", "beatles"),
        (normalize_answer, "a man, an apple; the end", "man apple end"),
        (normalize_answer, "theatre of another", "theatre of another"),
        (normalize_answer, "U.S.A.", "usa"),
        (normalize_answer, "the-end", "theend"),  # Punctuation is removed before articles.
        (normalize_answer, "“the” —", "“ ” —"),  # Only ASCII punctuation is removed.
        (normalize_answer, "Ｔｈｅ 北京，the", "ｔｈｅ 北京，"),
        (normalize_answer, "A\u00a0the\tAN", ""),
        (cmrc_segments, "《北京》，2008年", ["北", "京", "2008", "年"]),
        # The hyphen is removed, and does not separate.
        (cmrc_segments, "iPhone 6s的 A-8", ["iphone", "6s", "的", "a8"]),
        (cmrc_segments, "don't stop。", ["do", "n't", "stop"]),
        (cmrc_segments, "3.5%", ["3.5", "%"]),
        (cmrc_segments, "ＡＢＣ１２", ["ａｂｃ１２"]),  # Full width: one word of other text.
        # The ellipsis, and ideographs outside U+4E00 to U+9FA5, are other text.
        (cmrc_segments, "…㐀龥龦", ["…㐀", "龥", "龦"]),
        (cmrc_segments, "  ", []),
        (dureader_segments, "《北京》，2008 Nian年", ["北", "京", "2008 nian", "年"]),
        (dureader_segments, "a=b|c", ["a", "=", "bc"]),
        (dureader_segments, "x-y; 3.5…", ["x-y; 3.5…"]),
        (dureader_segments, "㐀龦\U00020000x", ["㐀", "龦", "\U00020000", "x"]),
        (dureader_segments, "，。", []),
    ],
)
def test_a_text_is_normalized_or_segmented_as_in_the_official_scripts(made_of: Any, text: str, expected: Any) -> None:
    """CMRC segments Chinese by character and other text by word; DuReader keeps other text whole."""
    assert made_of(text) == expected


def test_f1_counts_each_word_as_often_as_it_occurs_and_the_best_answer_is_taken() -> None:
    f1 = 2 * (2 / 3) * (2 / 3) / (4 / 3)
    assert SQUAD.scores(["new york city"], "New York, the York") == pytest.approx((0, f1))
    assert SQUAD.scores(["one"], "two") == (0, 0)
    assert SQUAD.scores(["the"], "a") == (1, 0)
    assert squad_v2({"1": ["the"]}, {"1": "a"})["f1"] == 100
    gold = {"1": ["red", "dark red"], "2": ["blue whale"], "3": ["green"]}
    scores = squad_v1(gold, {"1": "The dark red.", "2": "whale", "unknown": "x"})
    assert scores == pytest.approx({"exact_match": 100 / 3, "f1": 100 * (1 + 2 / 3) / 3, "total": 3, "skipped": 1})


GOLD = {"a": ["red car"], "b": ["blue"], "c": [], "d": []}
TEXTS = {"a": "car", "b": "blue", "c": "wrong", "d": ""}
NA_PROB = {"a": 0.2, "b": 0.6, "c": 0.8, "d": 0.9}


def test_squad_v2_splits_questions_with_and_without_answer_by_a_threshold() -> None:
    expected = {"exact": 50, "f1": 100 * (2 / 3 + 1 + 0 + 1) / 4, "total": 4}
    expected |= {"HasAns_exact": 50, "HasAns_f1": 100 * (2 / 3 + 1) / 2, "HasAns_total": 2}
    expected |= {"NoAns_exact": 50, "NoAns_f1": 50, "NoAns_total": 2}
    assert squad_v2(GOLD, TEXTS) == pytest.approx(expected)
    assert "NoAns_total" not in squad_v2({"a": ["red"]}, {"a": "red"})
    assert "HasAns_total" not in squad_v2({"c": []}, {"c": ""})
    scores = squad_v2(GOLD, TEXTS, NA_PROB, threshold=0.5)
    assert (scores["HasAns_exact"], scores["NoAns_exact"]) == (0, 100)
    assert scores["HasAns_f1"] == pytest.approx(100 * (2 / 3 + 0) / 2)
    # The comparison is strict: at the threshold itself the question is answered.
    assert squad_v2(GOLD, TEXTS, NA_PROB, threshold=0.6)["HasAns_exact"] == 50
    assert (scores["best_exact"], scores["best_exact_thresh"]) == (75, 0.6)
    assert scores["best_f1"] == pytest.approx(100 * (2 / 3 + 1 + 1 + 1) / 4)
    with pytest.raises(InputError, match=r"question 'b' has no prediction \(3 in all\)"):
        squad_v2(GOLD, {"a": "x"})
    with pytest.raises(InputError, match="question 'a' has no probability of no answer"):
        squad_v2(GOLD, TEXTS, {})
    scores = squad_v2({"a": ["red"], "b": ["blue"], "c": []}, {"a": "", "b": "", "c": ""})
    assert (scores["HasAns_f1"], scores["NoAns_f1"], scores["f1"]) == (0, 100, pytest.approx(100 / 3))


def test_the_best_threshold_is_that_of_an_exhaustive_search() -> None:
    draw = random.Random(2)
    for _ in range(30):
        gold = {str(i): draw.choice([[], ["red car"]]) for i in range(12)}
        texts = {key: draw.choice(["", "red car", "car", "blue"]) for key in gold}
        na_prob = {key: draw.random() for key in gold}
        scores = squad_v2(gold, texts, na_prob)
        for name in ("exact", "f1"):
            at = {limit: squad_v2(gold, texts, na_prob, limit)[name] for limit in (0.0, *na_prob.values())}
            # In the search, "" for an unanswerable question is right at every threshold, as it is in the scores.
            assert scores[f"best_{name}"] == pytest.approx(max(at.values()))
            assert at[scores[f"best_{name}_thresh"]] == pytest.approx(max(at.values()))


def test_the_longest_run_that_both_texts_have_is_common() -> None:
    """Also one of frequent segments in a long text, and only the longest one of several."""
    pairs = ("abcab", "cabxc"), ("abxcd", "abycd"), ("", ""), ("ab" * 150, "ba" * 150)
    assert [common_run([*a], [*b]) for a, b in pairs] == [3, 2, 0, 299]


CHINESE_GOLD = {"1": ["范廷颂", "保禄·范廷颂枢机"], "2": ["1963年"], "3": ["河内"], "4": ["apple pie"]}
CHINESE_TEXTS = {"1": "范廷颂枢机", "2": "《1963年》", "4": "apple"}


def test_cmrc_and_dureader_take_the_best_answer_and_count_a_missing_one_as_0() -> None:
    f1 = [2 * 5 / (5 + 7), 1, 0, 2 * 1 / (1 + 2)]
    expected = {"f1": 100 * sum(f1) / 4, "em": 25, "total": 4, "skipped": 1}
    expected["average"] = (expected["f1"] + expected["em"]) / 2
    assert cmrc2018(CHINESE_GOLD, CHINESE_TEXTS) == pytest.approx(expected)
    # "apple" and "apple pie" are one segment each, and differ.
    expected |= {"f1": 100 * (2 * 5 / (5 + 7) + 1) / 4}
    del expected["average"]
    assert dureader_robust(CHINESE_GOLD, CHINESE_TEXTS) == pytest.approx(expected)
    assert cmrc2018({"1": ["，"]}, {"1": "。"}) == {"average": 50, "f1": 0, "em": 100, "total": 1, "skipped": 0}
    assert dureader_robust({"1": ["，"]}, {"1": "。"}) == {"f1": 0, "em": 100, "total": 1, "skipped": 0}
    assert cmrc_normalize(" A-B(c)，…… ") == "ab(c)……"
    assert dureader_normalize(" A-B(c)，…… ") == " a-bc…… "
