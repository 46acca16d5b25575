"""The kinds of tasks by name. See base.py for what a kind is."""

from __future__ import annotations

from typing import Any

from reader.errors import InputError, similar
from tasks.kinds.base import Kind
from tasks.kinds.multiple_choice import MultipleChoice
from tasks.kinds.sentences import Classification, MultiLabel, Regression
from tasks.kinds.settings import KindSettings
from tasks.kinds.span import Span
from tasks.kinds.tagging import Tagging
from tasks.kinds.task import Task
from tasks.metrics.catalog import METRICS

KINDS: dict[str, type[Kind[Any, Any]]] = {
    kind.name: kind for kind in (Classification, MultiLabel, Regression, MultipleChoice, Span, Tagging)
}


def kind_of(task: Task, settings: KindSettings) -> Kind[Any, Any]:
    """Return the kind of a task whose labels are known (see load.labelled_by), with these settings."""
    return KINDS[task.kind](task, settings)


def checked(task: Task) -> Task:
    """Return the task; raises InputError unless it has labels if it needs any, and its metric applies to it."""
    metrics = KINDS[task.kind].metrics
    if task.metric not in metrics:
        names = f"{', '.join(metrics)}{similar(task.metric, metrics)}"
        raise InputError(f"metric: {task.metric!r} does not apply to {task.kind}; choose one of {names}")
    if task.unanswerable and task.metric != "squad_v2":
        raise InputError(f"metric: {task.metric} needs an answer to every question; choose squad_v2")
    if task.labels == ():
        raise InputError("labels: there are none, so there is nothing to learn")
    known = METRICS[task.metric].labels
    for label in task.labels or ():
        if known and label not in known:
            raise InputError(
                f"metric: {task.metric} needs the labels {' and '.join(known)}, and the task has {label!r}"
            )
    return task
