"""Metrics of classes and of numbers give scores computed by hand, also in degenerate cases."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from scipy.stats import NearConstantInputWarning, pearsonr

from reader.errors import InputError
from tasks.metrics.labels_and_scores import (
    accuracy,
    accuracy_by_id,
    accuracy_f1,
    correlation,
    macro_f1,
    matthews,
    multi_label_f1,
    race,
)

# True positives 2, false positives 1, false negatives 1, true negatives 4.
GOLD = ["1", "1", "1", "0", "0", "0", "0", "0"]
PREDICTIONS = ["1", "1", "0", "1", "0", "0", "0", "0"]


@pytest.mark.filterwarnings("error")
def test_figures_of_a_binary_task_follow_from_its_table_without_warnings_if_predictions_are_constant() -> None:
    assert accuracy(GOLD, PREDICTIONS) == {"accuracy": 6 / 8}
    expected = {"accuracy": 6 / 8, "f1": 2 / 3, "average": (6 / 8 + 2 / 3) / 2}
    assert accuracy_f1(GOLD, PREDICTIONS) == pytest.approx(expected)
    assert macro_f1(GOLD, PREDICTIONS) == pytest.approx({"accuracy": 6 / 8, "macro_f1": (2 / 3 + 8 / 10) / 2})
    assert macro_f1(["a", "a"], ["a", "b"])["macro_f1"] == pytest.approx((2 / 3 + 0) / 2)  # b is only predicted
    correlation = (2 * 4 - 1 * 1) / math.sqrt(3 * 3 * 5 * 5)
    assert matthews(GOLD, PREDICTIONS) == pytest.approx({"matthews": correlation, "accuracy": 6 / 8})
    assert matthews([*"101"], [*"111"])["matthews"] == 0
    assert matthews([*"11"], [*"11"]) == {"matthews": 0, "accuracy": 1}
    assert accuracy_f1([*"101"], [*"000"]) == pytest.approx({"accuracy": 1 / 3, "f1": 0, "average": 1 / 6})
    assert accuracy_f1([*"00"], [*"00"])["f1"] == 0
    assert accuracy_f1([*"101"], [*"111"])["f1"] == pytest.approx(0.8)


def test_accuracy_by_id_counts_missing_answers_as_wrong_and_that_of_race_is_per_school_too() -> None:
    scores = accuracy_by_id({"a": 0, "b": 1, "c": 2}, {"a": 0, "b": 2, "unknown": 1})
    assert scores == pytest.approx({"accuracy": 1 / 3, "total": 3, "skipped": 1})
    gold = {"high/1-0": "A", "high/1-1": "B", "high2.txt/0": "C", "middle/1-0": "D"}
    scores = race(gold, {"high/1-0": "A", "high/1-1": "C", "middle/1-0": "D"})
    assert scores == pytest.approx({"accuracy": 2 / 4, "high": 1 / 3, "middle": 1, "total": 4, "skipped": 1})
    assert "high" not in race({"middle/1-0": "D"}, {})
    with pytest.raises(InputError, match="'junior/1-0'"):
        race({"junior/1-0": "A"}, {})


@pytest.mark.parametrize("labels", ["ab", "abcde"])
def test_scores_of_label_sets_are_those_of_scikit_learn(labels: str) -> None:
    """With a label that only the predictions have, one that only the gold values have, and one that neither has."""
    from sklearn.metrics import accuracy_score, f1_score, precision_score, recall_score

    draw = random.Random(len(labels))
    names = [label for label in labels if label != "e"]
    gold, predictions = (
        [tuple(label for label in names if label != absent and draw.random() < 0.4) for _ in range(30)]
        for absent in ("d", "c")
    )
    flags = [[[label in row for label in labels] for row in side] for side in (gold, predictions)]
    scores = multi_label_f1(gold, predictions, labels)
    for average in ("micro", "macro"):
        assert scores[f"{average}_f1"] == pytest.approx(f1_score(*flags, average=average, zero_division=0))
    assert scores["micro_precision"] == pytest.approx(precision_score(*flags, average="micro"))
    assert scores["micro_recall"] == pytest.approx(recall_score(*flags, average="micro"))
    assert scores["accuracy"] == pytest.approx(accuracy_score(*flags))
    of_labels = f1_score(*flags, average=None, zero_division=0)
    assert [scores[f"{label}_f1"] for label in labels] == pytest.approx(list(of_labels))
    assert of_labels[-1] == 0 or labels == "ab"


def test_scores_of_label_sets_without_labels_and_with_a_label_called_micro() -> None:
    assert {*multi_label_f1([()], [()], "a").values()} == {0.0, 1.0}
    assert multi_label_f1([()], [()], "a")["accuracy"] == 1
    scores = multi_label_f1([("micro",), ("b",)], [("micro",), ()], ("micro", "b"))
    assert (scores["micro_f1"], scores["macro_f1"]) == (pytest.approx(2 / 3), 0.5)


@pytest.mark.filterwarnings("error")
def test_correlations_are_those_of_values_and_of_ranks_or_0() -> None:
    scores = correlation([1.0, 2.0, 3.0, 4.0], [0.0, 0.0, 0.0, 8.0])
    expected = {"pearson": 12 / math.sqrt(5 * 48), "spearman": 3 / math.sqrt(5 * 3)}
    assert scores == pytest.approx(expected | {"average": sum(expected.values()) / 2})
    for gold, predictions in (([1.0, 2.0, 3.0], [0.1, 0.1, 0.1]), ([2.5, 2.5], [1.0, 3.0]), ([1.0], [1.0])):
        assert correlation(gold, predictions) == {"pearson": 0, "spearman": 0, "average": 0}


def test_a_correlation_of_nearly_equal_predictions_is_that_of_scipy_with_its_warning() -> None:
    gold, noise = np.random.default_rng(0).uniform(0, 5, 200), np.random.default_rng(1).normal(0, 1e-15, 200)
    with pytest.warns(NearConstantInputWarning):
        expected = pearsonr(2.5 + noise, gold).statistic
    with pytest.warns(NearConstantInputWarning):
        assert correlation([*gold], [*(2.5 + noise)])["pearson"] == expected
