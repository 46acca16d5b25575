"""The settings with which a task is fine-tuned unless others are given: conf/tasks/NAME.yaml."""

from __future__ import annotations

from pathlib import Path

from ernie_gram.config.loading import read_yaml
from reader.system.installation import CONF, is_settings_file, settings_file

CONFIG = "--config"


def settings_of(task: str) -> list[str]:
    """Return the options of fine-tuning that select a task and its settings.

    A YAML file is one of settings if it has the key `task` or `base`, else that of a custom task. A name without a file
    in conf/tasks is unknown.
    """
    if is_settings_file(task):
        own = settings_file(Path(task))
        is_settings = own.is_file() and not {"task", "base"}.isdisjoint(read_yaml(own))
        return [CONFIG, str(own)] if is_settings else ["--task", task]
    path = CONF / "tasks" / f"{task}.yaml"
    return [CONFIG, str(path)] if path.is_file() else ["--task", task]
