"""The record of a form of submission, and what the forms share."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tasks.data.examples import Example
from tasks.kinds.base import Decoded
from tasks.registry.task import Task


@dataclass(frozen=True)
class Predicted:
    """The predictions of a split.

    Attributes:
        task: its labels are known.
        split: the name of the split.
        examples: all examples of the split, in the order of the file, with distinct IDs.
        decoded: their predictions.
    """

    task: Task
    split: str
    examples: Sequence[Example]
    decoded: Decoded

    def pairs(self) -> list[tuple[Example, Any]]:
        """Return each example with its answer (see Decoded.answers)."""
        return list(zip(self.examples, self.decoded.answers, strict=True))


def no_companions(predicted: Predicted) -> dict[str, bytes]:
    """Return {}: most submissions are one file."""
    return {}


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
    content: Callable[[Predicted], bytes]
    companions: Callable[[Predicted], dict[str, bytes]] = no_companions


def json_bytes(value: Any) -> bytes:
    """Return a JSON value on one line, which ends with a line feed."""
    return f"{json.dumps(value, ensure_ascii=False)}\n".encode()


def json_id(example_id: str) -> int | str:
    """Return an ID as JSON files of benchmarks have it: a number if it was one in the official file."""
    return int(example_id) if example_id == "0" or (example_id.isdecimal() and example_id[0] != "0") else example_id
