"""Predictions as JSON objects, one for each example, for users and programs."""

from __future__ import annotations

from typing import Any

from tasks.kinds.base import Predictions
from tasks.kinds.catalog import KINDS
from tasks.submissions.form import json_id


def records_of(predictions: Predictions) -> list[dict[str, Any]]:
    """Return one JSON object for each example, in order, with its `id` and what the kind of task says (Kind.record)."""
    record = KINDS[predictions.task.kind].record
    rows = zip(predictions.examples, predictions.answers, predictions.details, strict=True)
    return [{"id": json_id(example.id), **record(example, answer, detail)} for example, answer, detail in rows]
