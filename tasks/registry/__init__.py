"""The registry of tasks, by name: the rows of conf/registry, which are written like tasks of one's own (task_file.py).

They have further keys: `folders`, `submission` and `submission_name` of Task; and in place of `files`, `sources`, those
of each split in order of preference. A source is a file; a list of files that are read together; or a map with `files`
and the keys of another layout.
"""

from __future__ import annotations

from pathlib import Path

from reader.errors import InputError, similar
from reader.system.installation import CONF, is_settings_file
from reader.system.untrusted_text import read_yaml
from tasks.kinds.task import Task
from tasks.registry.task_file import SOURCES, read_task_file, task_of

FILES = ("glue", "english", "chinese", "clue")
TASKS: dict[str, Task] = {
    name: task_of(row, name, (SOURCES, "folders", "submission", "submission_name"))
    for file in FILES
    for name, row in read_yaml(CONF / "registry" / f"{file}.yaml").items()
}


def find_task(name: str) -> Task:
    """Return a task of the registry by its name, or a custom task by the path of its .yaml file.

    Raises InputError, with the most similar name, for an unknown one, and as `read_task_file` does.
    """
    if is_settings_file(name):
        return read_task_file(Path(name))
    if name not in TASKS:
        raise InputError(f"no task {name!r}{similar(name, TASKS)} (the tasks: {', '.join(TASKS)})")
    return TASKS[name]
