"""Metrics of classes give scores computed by hand, also in degenerate cases."""

from __future__ import annotations

import math
import random
import warnings
from collections.abc import Callable

import pytest

from reader.errors import InputError
from tasks.metrics.labels import accuracy, accuracy_by_id, accuracy_f1, macro_f1, matthews, race

# True positives 2, false positives 1, false negatives 1, true negatives 4.
GOLD = [1, 1, 1, 0, 0, 0, 0, 0]
PREDICTIONS = [1, 1, 0, 1, 0, 0, 0, 0]


def test_figures_of_a_binary_task_follow_from_its_table() -> None:
    assert accuracy(GOLD, PREDICTIONS) == {"accuracy": 6 / 8}
    expected = {"accuracy": 6 / 8, "f1": 2 / 3, "average": (6 / 8 + 2 / 3) / 2}
    assert accuracy_f1(GOLD, PREDICTIONS) == pytest.approx(expected)
    assert macro_f1(GOLD, PREDICTIONS) == pytest.approx({"accuracy": 6 / 8, "macro_f1": (2 / 3 + 8 / 10) / 2})
    correlation = (2 * 4 - 1 * 1) / math.sqrt(3 * 3 * 5 * 5)
    assert matthews(GOLD, PREDICTIONS) == pytest.approx({"matthews": correlation, "accuracy": 6 / 8})


def test_macro_f1_is_the_mean_over_labels_of_either_side() -> None:
    # a: 2 right of 2 predicted and 3 gold; b: 1 right of 2 predicted and 1 gold; c: only predicted.
    scores = macro_f1(["a", "a", "a", "b"], ["a", "a", "b", "b"])
    assert scores["macro_f1"] == pytest.approx((4 / 5 + 2 / 3) / 2)
    scores = macro_f1(["a", "a", "a", "b"], ["a", "a", "c", "b"])
    assert scores["macro_f1"] == pytest.approx((4 / 5 + 1 + 0) / 3)


def test_matthews_is_the_correlation_of_random_labels() -> None:
    draw = random.Random(0)
    for _ in range(20):
        gold, predictions = [draw.choices([0, 1], k=30) for _ in range(2)]
        pairs = list(zip(gold, predictions, strict=True))
        means = sum(gold) / 30, sum(predictions) / 30
        covariance = sum((a - means[0]) * (b - means[1]) for a, b in pairs)
        scale = math.sqrt(sum((a - means[0]) ** 2 for a in gold) * sum((b - means[1]) ** 2 for b in predictions))
        assert matthews(gold, predictions)["matthews"] == pytest.approx(covariance / scale)


def test_constant_predictions_give_the_official_figures_without_warnings() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert matthews([1, 0, 1], [1, 1, 1])["matthews"] == 0
        assert matthews([1, 1], [1, 1]) == {"matthews": 0, "accuracy": 1}
        assert accuracy_f1([1, 0, 1], [0, 0, 0]) == pytest.approx({"accuracy": 1 / 3, "f1": 0, "average": 1 / 6})
        assert accuracy_f1([0, 0], [0, 0])["f1"] == 0
        assert accuracy_f1([1, 0, 1], [1, 1, 1])["f1"] == pytest.approx(0.8)


def test_labels_are_compared_as_text() -> None:
    assert accuracy([1, "0", "true"], ["1", 0, "true"]) == {"accuracy": 1}
    assert accuracy_f1(["1", "0"], [1, 0])["f1"] == 1
    assert accuracy_by_id({"#idiom1#": 3}, {"#idiom1#": "3"})["accuracy"] == 1


def test_accuracy_by_id_counts_missing_answers_as_wrong_and_ignores_unknown_ones() -> None:
    scores = accuracy_by_id({"a": 0, "b": 1, "c": 2}, {"a": 0, "b": 2, "unknown": 1})
    assert scores == pytest.approx({"accuracy": 1 / 3, "total": 3, "skipped": 1})


def test_race_gives_accuracy_over_all_questions_and_per_school() -> None:
    gold = {"high/1-0": "A", "high/1-1": "B", "high2.txt/0": "C", "middle/1-0": "D"}
    scores = race(gold, {"high/1-0": "A", "high/1-1": "C", "middle/1-0": "D"})
    assert scores == pytest.approx({"accuracy": 2 / 4, "high": 1 / 3, "middle": 1, "total": 4, "skipped": 1})
    assert "high" not in race({"middle/1-0": "D"}, {})
    with pytest.raises(InputError, match="'junior/1-0'"):
        race({"junior/1-0": "A"}, {})


@pytest.mark.parametrize("metric", [accuracy, accuracy_f1, macro_f1, matthews])
def test_rows_that_do_not_match_are_refused(metric: Callable[..., object]) -> None:
    with pytest.raises(InputError, match="1 row of predictions for 2 rows"):
        metric([1, 0], [1])
    with pytest.raises(InputError, match="nothing to score"):
        metric([], [])


def test_f1_of_class_1_refuses_other_labels() -> None:
    with pytest.raises(InputError, match="'yes' is neither 0 nor 1; use macro_f1"):
        accuracy_f1(["yes", "1"], ["1", "1"])
