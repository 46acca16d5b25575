"""The settings with which a task is fine-tuned unless others are given: conf/tasks/NAME.yaml."""

from __future__ import annotations

from reader.system.installation import CONF, is_settings_file


def settings_of(task: str) -> list[str]:
    """Return the options of fine-tuning that select a task and its settings.

    A task without such a file is the .yaml file of a custom task, or an unknown name.
    """
    path = CONF / "tasks" / f"{task}.yaml"
    has_settings = not is_settings_file(task) and path.is_file()
    return ["--config", str(path)] if has_settings else ["--task", task]
