"""Results of fine_tuning.py: a file with one JSON object per line, for each task, side and seed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from reader.errors import InputError

Result = dict[str, Any]
KEY = ("task", "side", "seed")


class ResultsFile:
    """The results in `path`, which several processes may append to."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def all(self) -> list[Result]:
        """Return all results in the order in which they were added; raises InputError for a line that is none."""
        if not self.path.exists():
            return []
        results = []
        for number, line in enumerate(self.path.read_text(encoding="utf-8").splitlines(), 1):
            try:
                result = json.loads(line)
                [result[name] for name in (*KEY, "made_with", "score", "seconds")]
            except (ValueError, KeyError, TypeError) as error:
                raise InputError(f"{self.path}, line {number}: not a result; delete this line") from error
            results.append(result)
        return results

    def find(self, task: str, side: str, seed: int, made_with: dict[str, Any]) -> Result | None:
        """Return a result, or None; raises InputError if it was made with other settings or from another model."""
        for result in self.all():
            if (result["task"], result["side"], result["seed"]) == (task, side, seed):
                if result["made_with"] != made_with:
                    raise InputError(
                        f"{self.path}: {task}, {side}, seed {seed} was made with other settings or from another model; "
                        "choose another --output"
                    )
                return result
        return None

    def add(self, result: Result) -> None:
        """Append a result, with one write, so that the lines of several processes are not mixed."""
        line = (json.dumps(result, ensure_ascii=False) + "\n").encode()
        file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            os.write(file, line)
        finally:
            os.close(file)
