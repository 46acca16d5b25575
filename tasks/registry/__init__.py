"""The registry of tasks, by name."""

from __future__ import annotations

from reader.errors import InputError, similar
from tasks.kinds.catalog import checked
from tasks.kinds.task import Task
from tasks.registry.chinese import CHINESE, CLUE
from tasks.registry.english import ENGLISH, GLUE

TASKS: dict[str, Task] = {task.name: checked(task) for task in (*GLUE, *ENGLISH, *CHINESE, *CLUE)}


def task_named(name: str) -> Task:
    """Return a task of the registry; raises InputError with the most similar name for an unknown one."""
    if name not in TASKS:
        raise InputError(f"no task {name!r}{similar(name, TASKS)} (the tasks: {', '.join(TASKS)})")
    return TASKS[name]
