"""Fine-tuning: tasks, their official files, metrics and predictions. For Python code: `FineTuned` (docs/api.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reader import imported_late

if TYPE_CHECKING:
    from tasks.api import FineTuned as FineTuned

__getattr__ = imported_late(__name__, {"FineTuned": "tasks.api"})
