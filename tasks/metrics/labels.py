"""Metrics of classes: accuracy, F1, Matthews correlation, and accuracy over answers that are found by their IDs.

All scores are fractions, as GLUE's scorers give them. CLUE's tables print them times 100. Labels are compared as text,
so that 1 and "1" are equal: one may come from a JSON file and the other from a TSV file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from reader.errors import InputError
from tasks.metrics.metric import Scores, check_not_empty, check_rows

Label = str | int


def accuracy(gold: Sequence[Label], predictions: Sequence[Label]) -> Scores:
    """Return {"accuracy"}: the fraction of rows with the right label."""
    from sklearn.metrics import accuracy_score

    return {"accuracy": float(accuracy_score(*_as_text(gold, predictions)))}


def accuracy_f1(gold: Sequence[Label], predictions: Sequence[Label]) -> Scores:
    """Return {"accuracy", "f1", "average"} of a task with the labels 0 and 1 (GLUE: MRPC, QQP).

    F1 is that of class 1, and 0 if no row has this class or none is predicted to have it. `average` is the mean of both
    scores, which GLUE's total score uses. Raises InputError for any other label.
    """
    from sklearn.metrics import f1_score

    texts = _as_text(gold, predictions)
    unknown = sorted({label for side in texts for label in side} - {"0", "1"})
    if unknown:
        raise InputError(f"label {unknown[0]!r} is neither 0 nor 1; use macro_f1 for other labels")
    scores = accuracy(gold, predictions)
    f1 = float(f1_score(*([label == "1" for label in side] for side in texts), zero_division=0.0))
    return scores | {"f1": f1, "average": (scores["accuracy"] + f1) / 2}


def macro_f1(gold: Sequence[Label], predictions: Sequence[Label]) -> Scores:
    """Return {"accuracy", "macro_f1"}: the unweighted mean of F1 over the labels in `gold` or `predictions`."""
    from sklearn.metrics import f1_score

    f1 = f1_score(*_as_text(gold, predictions), average="macro", zero_division=0.0)
    return accuracy(gold, predictions) | {"macro_f1": float(f1)}


def matthews(gold: Sequence[Label], predictions: Sequence[Label]) -> Scores:
    """Return {"matthews", "accuracy"}: Matthews correlation in [-1, 1] (GLUE: CoLA).

    The correlation is 0 if all gold labels or all predictions are equal, as in scikit-learn.
    """
    from sklearn.metrics import matthews_corrcoef

    texts = _as_text(gold, predictions)
    # scikit-learn gives 0 as well, with a warning where both sides have the same single label.
    is_constant = any(len(set(side)) == 1 for side in texts)
    correlation = 0.0 if is_constant else float(matthews_corrcoef(*texts))
    return {"matthews": correlation} | accuracy(gold, predictions)


def accuracy_by_id(gold: Mapping[str, Label], predictions: Mapping[str, Label]) -> Scores:
    """Return {"accuracy", "total", "skipped"} of answers found by ID (ChID, C3).

    A missing prediction counts as wrong; `skipped` is their number. Predictions without a gold label are ignored.
    """
    check_not_empty(gold)
    right = [key in predictions and str(predictions[key]) == str(label) for key, label in gold.items()]
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


def _as_text(gold: Sequence[Label], predictions: Sequence[Label]) -> tuple[list[str], list[str]]:
    check_rows(gold, predictions)
    return [str(label) for label in gold], [str(label) for label in predictions]
