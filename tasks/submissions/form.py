"""The record of a form of submission, and what the forms share."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tasks.kinds.base import Predictions
from tasks.kinds.task import Task


@dataclass(frozen=True)
class Form:
    """A form of submission.

    Attributes:
        name: as in Task.submission.
        description: what the file is, in one line.
        file_name: (task, split) -> the name that the benchmark asks for.
        content: predictions -> the content of the file.
        companions: predictions -> further files beside it, by name.
    """

    name: str
    description: str
    file_name: Callable[[Task, str], str]
    content: Callable[[Predictions], bytes]
    companions: Callable[[Predictions], dict[str, bytes]] = lambda predictions: {}


def json_bytes(value: Any) -> bytes:
    """Return a JSON value on one line, which ends with a line feed."""
    return f"{json.dumps(value, ensure_ascii=False)}\n".encode()
