"""The kinds of tasks by name."""

from __future__ import annotations

from typing import Any

from tasks.kinds.base import Kind
from tasks.kinds.classification import Classification
from tasks.kinds.multiple_choice import MultipleChoice
from tasks.kinds.regression import Regression
from tasks.kinds.settings import KindSettings
from tasks.kinds.span import Span
from tasks.kinds.tagging import Tagging
from tasks.registry.task import Kind as KindName
from tasks.registry.task import Task

KINDS: dict[KindName, type[Kind[Any, Any]]] = {
    kind.name: kind for kind in (Classification, Regression, MultipleChoice, Span, Tagging)
}


def kind_of(task: Task, settings: KindSettings) -> Kind[Any, Any]:
    """Return the kind of a task whose labels are known (see load.with_labels), with these settings."""
    return KINDS[task.kind](task, settings)
