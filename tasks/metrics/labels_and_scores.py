"""Metrics of classes and of real numbers: accuracy, F1, correlations, and accuracy over answers found by their IDs.

All scores are fractions, as GLUE's scorers give them. CLUE's tables print them times 100.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from reader.errors import InputError

Label = str | int
Scores = dict[str, float]


def precision_recall_f1(correct: int, predicted: int, gold: int) -> tuple[float, float, float]:
    """Return precision, recall and F1 as fractions; a score whose denominator is zero is 0, as in conlleval.

    The order of operations is that of the official scripts for questions: equal to the last bit.
    """
    precision = correct / predicted if predicted else 0.0
    recall = correct / gold if gold else 0.0
    return precision, recall, 2 * precision * recall / (precision + recall) if correct else 0.0


def accuracy(gold: Sequence[Label], predictions: Sequence[Label]) -> Scores:
    """Return {"accuracy"}: the fraction of rows with the right label."""
    from sklearn.metrics import accuracy_score

    return {"accuracy": float(accuracy_score(gold, predictions))}


def accuracy_f1(gold: Sequence[str], predictions: Sequence[str]) -> Scores:
    """Return {"accuracy", "f1", "average"} of a task with the labels 0 and 1 (GLUE: MRPC, QQP).

    F1 is that of class 1, and 0 if no row has this class or none is predicted to have it. `average` is the mean of both
    scores, which GLUE's total score uses.
    """
    from sklearn.metrics import f1_score

    scores = accuracy(gold, predictions)
    f1 = float(f1_score(*([label == "1" for label in side] for side in (gold, predictions)), zero_division=0.0))
    return scores | {"f1": f1, "average": (scores["accuracy"] + f1) / 2}


def macro_f1(gold: Sequence[str], predictions: Sequence[str]) -> Scores:
    """Return {"accuracy", "macro_f1"}: the unweighted mean of F1 over the labels in `gold` or `predictions`."""
    from sklearn.metrics import f1_score

    f1 = f1_score(gold, predictions, average="macro", zero_division=0.0)
    return accuracy(gold, predictions) | {"macro_f1": float(f1)}


def multi_label_f1(
    gold: Sequence[tuple[str, ...]], predictions: Sequence[tuple[str, ...]], labels: Sequence[str]
) -> Scores:
    """Return {"micro_f1", "micro_precision", "micro_recall", "macro_f1", "accuracy"} and LABEL_f1 of each of `labels`.

    Micro scores count each pair of a row and a label; macro_f1 is the mean of all LABEL_f1; accuracy is the fraction of
    rows whose labels are all right. A score whose denominator is zero is 0, as scikit-learn's by default: so is the F1
    of a label that neither side has, and it counts in the mean.
    """
    right = [set(row) & set(predicted) for row, predicted in zip(gold, predictions, strict=True)]
    counts = [Counter(label for row in rows for label in row) for rows in (right, predictions, gold)]
    of_labels = {f"{label}_f1": precision_recall_f1(*(count[label] for count in counts))[2] for label in labels}
    precision, recall, f1 = precision_recall_f1(*(count.total() for count in counts))
    micro = {"micro_f1": f1, "micro_precision": precision, "micro_recall": recall}
    exact = sum(set(row) == set(predicted) for row, predicted in zip(gold, predictions, strict=True)) / len(gold)
    overall = {**micro, "macro_f1": sum(of_labels.values()) / len(labels), "accuracy": exact}
    # Shown first, but they also prevail: a label may be called micro.
    return overall | of_labels | overall


def matthews(gold: Sequence[str], predictions: Sequence[str]) -> Scores:
    """Return {"matthews", "accuracy"}: Matthews correlation in [-1, 1] (GLUE: CoLA).

    The correlation is 0 if all gold labels or all predictions are equal, as in scikit-learn.
    """
    from sklearn.metrics import matthews_corrcoef

    # scikit-learn gives 0 as well, with a warning where both sides have the same single label.
    is_constant = any(len(set(side)) == 1 for side in (gold, predictions))
    correlation = 0.0 if is_constant else float(matthews_corrcoef(gold, predictions))
    return {"matthews": correlation} | accuracy(gold, predictions)


def accuracy_by_id(gold: Mapping[str, Label], predictions: Mapping[str, Label]) -> Scores:
    """Return {"accuracy", "total", "skipped"} of answers found by ID (ChID, C3).

    A missing prediction counts as wrong; `skipped` is their number. Predictions without a gold label are ignored.
    """
    right = [predictions.get(key) == label for key, label in gold.items()]
    skipped = sum(key not in predictions for key in gold)
    return {"accuracy": sum(right) / len(right), "total": len(right), "skipped": skipped}


def race(gold: Mapping[str, Label], predictions: Mapping[str, Label]) -> Scores:
    """Return {"accuracy", "high", "middle", "total", "skipped"} of RACE: accuracy over all questions and per school.

    An ID begins with its school, as RACE's own do: "high19088.txt/0" or "high/19088.txt/0". A school without questions
    has no score. Raises InputError for an ID that begins otherwise.
    """
    schools: dict[str, dict[str, Label]] = {}
    for key, label in gold.items():
        school = re.match("high|middle", key)
        if school is None:
            raise InputError(f"the ID {key!r} begins neither with 'high' nor with 'middle'")
        schools.setdefault(school[0], {})[key] = label
    parts = {school: accuracy_by_id(part, predictions)["accuracy"] for school, part in sorted(schools.items())}
    return accuracy_by_id(gold, predictions) | parts


def correlation(gold: Sequence[float], predictions: Sequence[float]) -> Scores:
    """Return {"pearson", "spearman", "average"}, each in [-1, 1]. Tied values share their mean rank in Spearman's.

    A correlation is undefined if all gold scores or all predictions are equal, or if there is only one row. scipy gives
    NaN then; here it is 0, as Matthews correlation is, because NaN compares false with every other checkpoint. If all
    scores of a side are nearly equal, it is scipy's number, as in the official scorer, with scipy's warning.
    """
    from scipy.stats import pearsonr, spearmanr

    if np.ptp(gold) == 0 or np.ptp(predictions) == 0:
        return {"pearson": 0.0, "spearman": 0.0, "average": 0.0}
    pearson = float(pearsonr(predictions, gold).statistic)
    spearman = float(spearmanr(predictions, gold).statistic)
    return {"pearson": pearson, "spearman": spearman, "average": (pearson + spearman) / 2}
