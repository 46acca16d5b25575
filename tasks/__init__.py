"""Fine-tuning: tasks, their official files, metrics and predictions. For Python code: `FineTuned` (docs/api.md)."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tasks.api import FineTuned as FineTuned


def __getattr__(name: str) -> Any:
    """Return a name of this package's Python interface, which is imported when it is first used."""
    if name != "FineTuned":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module("tasks.api").FineTuned
