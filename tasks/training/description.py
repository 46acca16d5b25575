"""What a fine-tuned model was trained for: task.json in its run's folder, for prediction and export.

The file of a custom task is kept beside it, as task.yaml.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from ernie_gram.config.loading import config_from_tree
from reader.errors import InputError, located
from reader.system.atomic_files import write_atomically
from reader.system.untrusted_text import read_json
from tasks.kinds.settings import KindSettings
from tasks.kinds.task import Task
from tasks.registry import TASKS
from tasks.registry.task_file import read_task_file

FILE_NAME, TASK_FILE = "task.json", "task.yaml"


@dataclass(frozen=True)
class Description:
    """A task and how a model solves it.

    Attributes:
        task: with its labels, in the order of the model's classes.
        settings: the settings of the kind of task.
        segmenter: the segmenter of the tokenizer (see reader/tokenization/tokenizer.py).
        precision: the precision of matrix products.
    """

    task: Task
    settings: KindSettings
    segmenter: str
    precision: str


def as_json(description: Description) -> str:
    """Return the content of task.json."""
    task = description.task
    content = {
        "task": task.name,
        "title": task.title,
        "language": task.language,
        "kind": task.kind,
        "metric": task.metric,
        "labels": task.labels,
        "settings": asdict(description.settings),
        "segmenter": description.segmenter,
        "precision": description.precision,
    }
    return json.dumps(content, ensure_ascii=False, indent=1) + "\n"


def write_description(folder: Path, description: Description, task_file: Path | None) -> None:
    """Write task.json, and a copy of the file of a custom task, into the folder of a run."""
    if task_file is None:
        (folder / TASK_FILE).unlink(missing_ok=True)
    else:
        write_atomically(folder / TASK_FILE, task_file.read_bytes())
    write_atomically(folder / FILE_NAME, as_json(description))


def described_folder(path: Path) -> Path:
    """Return the folder with task.json: `path`, a run's folder, or the one above, if `path` is a checkpoint.

    Raises InputError if there is none.
    """
    folder = next((each for each in (path, path.resolve().parent) if (each / FILE_NAME).is_file()), None)
    if folder is None:
        raise InputError(f"{path}: not a fine-tuned model: there is no {FILE_NAME} in its folder")
    return folder


def read_description(path: Path) -> Description:
    """Return the description of a fine-tuned model; `path` is a run's folder, or a checkpoint in it.

    Raises InputError that names the file if it is missing or damaged.
    """
    folder = described_folder(path)
    source = folder / FILE_NAME
    own = folder / TASK_FILE
    try:
        content = read_json(source)
        name, labels = content["task"], content["labels"]
        settings, segmenter, precision = content["settings"], content["segmenter"], content["precision"]
        task = read_task_file(own) if own.is_file() else TASKS.get(name)
        if task is None:
            raise InputError(f"{source}: the task {name!r} is not in the registry, and there is no {TASK_FILE}")
        named = {"name": name, "title": content["title"]} if own.is_file() else {}
        with located(source):
            task = replace(task, labels=None if labels is None else tuple(labels), **named)
        return Description(task, config_from_tree(KindSettings, settings, str(source)), segmenter, precision)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{source}: damaged: {error}") from error
