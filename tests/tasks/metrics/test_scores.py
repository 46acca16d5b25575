"""Metrics of real numbers agree with plain definitions, and are never NaN."""

from __future__ import annotations

import math
import random
import warnings

import pytest

from reader.errors import InputError
from tasks.metrics.scores import correlation, mean_squared_error


def plain_pearson(xs: list[float], ys: list[float]) -> float:
    mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
    covariance = sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True))
    return covariance / math.sqrt(sum((x - mean_x) ** 2 for x in xs) * sum((y - mean_y) ** 2 for y in ys))


def plain_ranks(xs: list[float]) -> list[float]:
    """Return the rank of each value; equal values share the mean of their ranks."""
    return [sum(other < x for other in xs) + (sum(other == x for other in xs) + 1) / 2 for x in xs]


def test_correlations_agree_with_the_definitions_also_with_ties() -> None:
    draw = random.Random(1)
    for _ in range(20):
        gold = [float(draw.randint(0, 5)) for _ in range(25)]
        predictions = [float(round(value + draw.gauss(0, 2))) for value in gold]
        pearson = plain_pearson(gold, predictions)
        spearman = plain_pearson(plain_ranks(gold), plain_ranks(predictions))
        expected = {"pearson": pearson, "spearman": spearman, "average": (pearson + spearman) / 2}
        assert correlation(gold, predictions) == pytest.approx(expected)


def test_the_order_of_a_monotone_curve_gives_spearman_1_but_not_pearson_1() -> None:
    scores = correlation([0, 1, 2, 3], [0, 1, 8, 27])
    assert scores["spearman"] == pytest.approx(1)
    # Deviations from the means (1.5 and 9): 13.5 + 4 - 0.5 + 27 = 44; squares 5 and 81 + 64 + 1 + 324 = 470.
    assert scores["pearson"] == pytest.approx(44 / math.sqrt(5 * 470))


@pytest.mark.parametrize(
    ("gold", "predictions"), [([1.0, 2.0, 3.0], [0.1, 0.1, 0.1]), ([2.5, 2.5], [1.0, 3.0]), ([1.0], [1.0])]
)
def test_an_undefined_correlation_is_0(gold: list[float], predictions: list[float]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert correlation(gold, predictions) == {"pearson": 0, "spearman": 0, "average": 0}


def test_mean_squared_error_is_the_mean_of_the_squares() -> None:
    assert mean_squared_error([1, 2, 3], [1, 4, 0]) == {"mean_squared_error": pytest.approx((0 + 4 + 9) / 3)}


def test_numbers_that_are_not_finite_are_refused() -> None:
    with pytest.raises(InputError, match=r"the prediction of row 1 \(counted from 0\) is nan"):
        correlation([1, 2], [0.5, math.nan])
    with pytest.raises(InputError, match=r"the gold score of row 0 .* is inf"):
        mean_squared_error([math.inf, 2], [0.5, 1])
