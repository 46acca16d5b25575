"""JSON files with one object, {ID: prediction}: SQuAD, CMRC 2018, DuReader-robust, ChID, RACE.

Sources: SQuAD's evaluate-v2.0.py (predictions.json, na_prob.json); cmrc2018_evaluate.py of github.com/ymcui/cmrc2018;
examples/machine_reading_comprehension/DuReader-robust of PaddlePaddle/PaddleNLP; for ChID (tag: index of the idiom,
counted from 0) those of `json_lines`. RACE takes no submissions.
"""

from __future__ import annotations

import math
import string

from tasks.kinds.base import Predictions
from tasks.kinds.task import Task
from tasks.submissions.form import json_bytes

NA_PROB = "na_prob.json"


def predictions_file_name(task: Task, split: str) -> str:
    """Return predictions.json."""
    return "predictions.json"


def answers_by_id(predictions: Predictions) -> bytes:
    """Return the answers by ID: texts, which are "" for questions without answer, or indices of options."""
    return json_bytes({example.id: answer for example, answer in predictions.pairs()})


def letters_by_id(predictions: Predictions) -> bytes:
    """Return the letters of the chosen options, A, B, C ..., by ID."""
    return json_bytes({example.id: string.ascii_uppercase[answer] for example, answer in predictions.pairs()})


def no_answer_probabilities(predictions: Predictions) -> dict[str, bytes]:
    """Return na_prob.json if questions may be unanswerable, else nothing.

    A probability above 0.5 means no answer. It is the logistic function of the difference between the question's
    `na_score` and the threshold (see Span.decode). The answers in the main file are "" for the same questions, and no
    probability exceeds 1, the default threshold of the official script; so its scores for the main file do not change.
    """
    if not predictions.task.unanswerable:
        return {}
    threshold = predictions.null_threshold
    assert threshold is not None
    details = zip(predictions.examples, predictions.details, strict=True)
    values = {example.id: _logistic(detail["na_score"] - threshold) for example, detail in details}
    return {NA_PROB: json_bytes(values)}


def _logistic(value: float) -> float:
    return 1 / (1 + math.exp(-value)) if value >= 0 else math.exp(value) / (1 + math.exp(value))
