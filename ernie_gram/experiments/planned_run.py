"""A planned run of an experiment. No Paddle here."""

from __future__ import annotations

import hashlib
import json
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ernie_gram.config.loading import flatten
from ernie_gram.run.run_log import read_json_lines

# The records of the finished runs of an experiment, in its folder.
RESULTS = "results.jsonl"
# The folders of a study that hold its runs.
MODELS, FINETUNED = "models", "finetuned"
# The numbers of a finished run by name; the first one is shown when it ends.
Result = dict[str, float]
# Settings that do not change the result of a run.
WITHOUT_EFFECT = ("paths.output", "trainer.")


@dataclass(frozen=True, eq=False)
class PlannedRun(ABC):
    """A training with one combination of the settings that an experiment varies, and one seed.

    Attributes:
        folder: of the run; its name is the name of the run.
        varied: what the experiment varies, key -> value as on the command line.
        seed: of the run.
        module: of the command that starts the training in NPROC processes.
        arguments: of this command.
        config: the resolved settings, a dataclass with the sections `optimizer`, `paths` and `trainer`.
    """

    folder: Path
    varied: Mapping[str, str]
    seed: int
    module: str
    arguments: tuple[str, ...]
    config: Any

    @abstractmethod
    def result(self) -> Result | None:
        """Return the numbers of the run, or None if it is not finished.

        Raises InputError if the folder has the result of another run.
        """

    @property
    def name(self) -> str:
        """The name of the folder."""
        return self.folder.name

    @property
    def command(self) -> list[str]:
        """The program and its arguments."""
        return [sys.executable, "-m", self.module, *self.arguments]

    @property
    def device(self) -> tuple[str, str, str]:
        """What `check_device` needs: trainer.device, optimizer.precision and the implementation of attention."""
        model = getattr(self.config, "model", None)
        return self.config.trainer.device, self.config.optimizer.precision, getattr(model, "attention", "plain")

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that can change the result, as flat `section.key: value`."""
        flat = flatten(asdict(self.config))
        return {key: value for key, value in flat.items() if not key.startswith(WITHOUT_EFFECT)}

    def record(self, result: Result) -> dict[str, Any]:
        """Return the line of a finished run in results.jsonl; `digest` is that of the settings."""
        digest = hashlib.sha256(json.dumps(self.settings, sort_keys=True).encode()).hexdigest()
        known = {"run": self.name, "varied": dict(self.varied), "seed": self.seed, "result": result}
        return {**known, "digest": digest, "settings": self.settings}


def recorded_runs(folder: Path) -> list[str]:
    """Return the names of the finished runs of an experiment; none without a file of results."""
    return list(dict.fromkeys(str(record["run"]) for record in read_json_lines(folder / RESULTS)[0] if "run" in record))
