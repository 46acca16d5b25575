"""Metrics of real numbers: Pearson and Spearman correlation (GLUE: STS-B), and the mean squared error."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from reader.errors import InputError
from tasks.metrics.metric import Scores, check_rows


def correlation(gold: Sequence[float], predictions: Sequence[float]) -> Scores:
    """Return {"pearson", "spearman", "average"}, each in [-1, 1]. Tied values share their mean rank in Spearman's.

    A correlation is undefined if all gold scores or all predictions are equal, or if there is only one row. scipy gives
    NaN then; here it is 0, as Matthews correlation is, because NaN compares false with every other checkpoint.
    """
    from scipy.stats import pearsonr, spearmanr

    gold_R, predictions_R = _finite_rows(gold, predictions)
    if np.ptp(gold_R) == 0 or np.ptp(predictions_R) == 0:
        return {"pearson": 0.0, "spearman": 0.0, "average": 0.0}
    pearson = float(pearsonr(predictions_R, gold_R).statistic)
    spearman = float(spearmanr(predictions_R, gold_R).statistic)
    return {"pearson": pearson, "spearman": spearman, "average": (pearson + spearman) / 2}


def mean_squared_error(gold: Sequence[float], predictions: Sequence[float]) -> Scores:
    """Return {"mean_squared_error"}, in the square of the scores' unit."""
    gold_R, predictions_R = _finite_rows(gold, predictions)
    return {"mean_squared_error": float(np.mean((gold_R - predictions_R) ** 2))}


def _finite_rows(gold: Sequence[float], predictions: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    """Return both as float64 [rows]. Raises InputError for NaN and infinity, with the row counted from 0."""
    check_rows(gold, predictions)
    sides = np.asarray(gold, dtype=np.float64), np.asarray(predictions, dtype=np.float64)
    for name, side_R in zip(("gold score", "prediction"), sides, strict=True):
        wrong = np.flatnonzero(~np.isfinite(side_R))
        if len(wrong):
            raise InputError(
                f"the {name} of row {wrong[0]} (counted from 0) is {side_R[wrong[0]]}, not a finite number"
            )
    return sides
