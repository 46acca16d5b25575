"""What is known of a model's training, for its card: it stays with the model when a run becomes a model folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from ernie_gram.run.run_log import Record
from reader.errors import InputError

# Sections of a run's settings that say how it was trained. Those of the prediction heads are in Model.pretraining.
SECTIONS = ("seed", "optimizer")


@dataclass(frozen=True)
class TrainingRecord:
    """What a card says about a training run. Folders are named without their paths.

    Attributes:
        corpus: name of the folder of the corpus; "" if unknown.
        start: name of the folder of the model that training started from; "" if it started from random weights.
        settings: how the model was trained, as nested dicts.
        scores: the last evaluation on held-out text, `step` included; {} if there is none.
    """

    corpus: str = ""
    start: str = ""
    settings: dict[str, Any] = field(default_factory=dict)
    scores: dict[str, float] = field(default_factory=dict)


def record_of_run(config: Mapping[str, Any], evaluation: Record | None) -> TrainingRecord:
    """Return the record of a run.

    Args:
        config: the resolved settings of the run.
        evaluation: see `run_log.last_evaluation`.
    """
    paths, trainer = config.get("paths", {}), config.get("trainer", {})
    settings = {key: config[key] for key in SECTIONS if key in config}
    if "max_steps" in trainer:
        settings["trainer"] = {"max_steps": trainer["max_steps"]}
    scores = {key: value for key, value in (evaluation or {}).items() if _is_number(value)}
    return TrainingRecord(Path(paths.get("corpus") or "").name, Path(paths.get("start") or "").name, settings, scores)


def record_of_json(value: object, source: str) -> TrainingRecord | None:
    """Return the record that `dataclasses.asdict` made, None for null; raises InputError, which names `source`."""
    if value is None:
        return None
    default = TrainingRecord()
    types = {each.name: type(getattr(default, each.name)) for each in fields(TrainingRecord)}
    valid = isinstance(value, dict) and all(isinstance(part, types.get(key, ())) for key, part in value.items())
    if not isinstance(value, dict) or not valid or not all(map(_is_number, value.get("scores", {}).values())):
        raise InputError(f"{source}: expected {', '.join(types)}, as `ernie-gram convert` writes them")
    return TrainingRecord(**value)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
