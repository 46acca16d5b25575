"""A fine-tuned model: its task, its settings, its tokenizer, its parameters. Nothing here imports Paddle.

What it was trained for is in task.json in its run's folder, for prediction and export; the file of a custom task is
kept beside it, as task.yaml.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ernie_gram.config import require
from ernie_gram.config.loading import config_from_tree
from ernie_gram.formats.heads import TASK_PREFIX
from ernie_gram.formats.model import ModelRecord
from ernie_gram.formats.paddlenlp import TaskHead
from ernie_gram.formats.parameters import HEAD_TRANSFORM
from ernie_gram.formats.registry import read_model
from reader.batches.fields import SLOTS
from reader.errors import InputError, located
from reader.system.atomic_files import write_atomically
from reader.system.untrusted_text import read_json
from reader.tokenization.tokenizer import Tokenizer
from tasks.kinds.base import Kind
from tasks.kinds.catalog import kind_of
from tasks.kinds.settings import KindSettings
from tasks.kinds.task import Task
from tasks.registry import TASKS
from tasks.registry.task_file import read_task_file

FILE_NAME, TASK_FILE = "task.json", "task.yaml"


@dataclass(frozen=True)
class TaskDescription:
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


def as_json(description: TaskDescription) -> str:
    """Return the content of task.json."""
    task = description.task
    content = {
        "task": task.name,
        **{key: getattr(task, key) for key in ("title", "language", "kind", "metric", "labels")},
        "settings": asdict(description.settings),
        "segmenter": description.segmenter,
        "precision": description.precision,
    }
    return json.dumps(content, ensure_ascii=False, indent=1) + "\n"


def write_description(folder: Path, description: TaskDescription, task_file: Path | None) -> None:
    """Write task.json, and a copy of the file of a custom task, into the folder of a run."""
    if task_file is None:
        (folder / TASK_FILE).unlink(missing_ok=True)
    else:
        write_atomically(folder / TASK_FILE, task_file.read_bytes())
    write_atomically(folder / FILE_NAME, as_json(description))


def described_folder(path: Path) -> Path | None:
    """Return the folder with task.json, if any: `path`, a run's folder, or the one above, if it is a checkpoint."""
    return next((each for each in (path, path.resolve().parent) if (each / FILE_NAME).is_file()), None)


def read_description(path: Path) -> TaskDescription:
    """Return the description of a fine-tuned model; `path` is a run's folder, or a checkpoint in it.

    Raises InputError that names the file if it is missing or damaged.
    """
    folder = described_folder(path)
    if folder is None:
        raise InputError(f"{path}: not a fine-tuned model: there is no {FILE_NAME} in its folder; give the run itself")
    source = folder / FILE_NAME
    own = folder / TASK_FILE
    try:
        content = read_json(source)
        name, labels = content["task"], content["labels"]
        settings, segmenter, precision = content["settings"], content["segmenter"], content["precision"]
        task = read_task_file(own) if own.is_file() else TASKS.get(name)
        if task is None:
            known = f"the task {name!r} is not in the registry, and there is no {TASK_FILE}"
            raise InputError(f"{source}: {known} beside it; give the run of the fine-tuning")
        named = {"name": name, "title": content["title"]} if own.is_file() else {}
        with located(source):
            task = replace(task, labels=None if labels is None else tuple(labels), **named)
        return TaskDescription(task, config_from_tree(KindSettings, settings, str(source)), segmenter, precision)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{source}: damaged: {error}") from error


# The value of `outputs` in the description of an exported program (see ernie_gram/inference/description.py).
TASK_SCORES = "task_scores"


@dataclass(frozen=True)
class LoadedModel(TaskDescription):
    """A fine-tuned model.

    Attributes:
        source: the folder of the checkpoint.
        tokenizer: the tokenizer of its training.
        model: its parameters, including those of the output layer.
    """

    source: Path
    tokenizer: Tokenizer
    model: ModelRecord

    @property
    def notes(self) -> list[str]:
        """What was changed, passed over or not found while reading, one line each, with the folder's name."""
        notes = [*self.model.notes]
        if self.task.unanswerable and self.settings.span.null_threshold is None:
            notes.append('has no threshold for "no answer", because its training has not ended: 0 is used')
        return [f"{self.source}: {note}" for note in notes]

    @property
    def kind(self) -> Kind[Any, Any]:
        """The kind of the task. Without a threshold for "no answer", it takes 0."""
        threshold = self.settings.span.null_threshold
        return kind_of(self.task, self.settings.with_null_threshold(0.0 if threshold is None else threshold))

    def paddlenlp_head(self) -> TaskHead:
        """Return the output layer as PaddleNLP's class stores it; raises InputError if that class cannot store it.

        No option accepts the loss: without a part of the output layer, the results would differ.
        """
        parameters, kind = self.model.parameters, self.kind
        if kind.paddlenlp_class is None:
            reason = f"{kind.name.replace('_', ' ')}: PaddleNLP has no such class of ErnieGram"
        elif HEAD_TRANSFORM[0] in parameters:
            name = HEAD_TRANSFORM[0].rpartition(".")[0]
            reason = f"{name} under the output layer; fine-tune with --head.lm_transform false to export the model"
        elif not (kind.has_pooler or SLOTS in kind.input_fields):
            output = kind.settings.head.sentence_output
            reason = f"head.sentence_output {output}: PaddleNLP's class reads the pooled output"
        else:
            weight, bias = parameters[f"{kind.output}_w"], parameters[f"{kind.output}_b"]
            return TaskHead(kind.paddlenlp_class, weight, bias, kind.classes, kind.problem_type)
        raise InputError(f"{self.source}: paddlenlp cannot hold {reason}; --outputs encoder leaves it out")


def load_finetuned(run: Path, read: ModelRecord | None = None) -> LoadedModel:
    """Return the fine-tuned model of a run.

    `run` is the run's folder, of which the best model is read, or else the newest checkpoint; or one checkpoint. `read`
    is the model that was read from it, if it was.

    Raises InputError that names the folder or file if it is not that of a fine-tuned model, or if it is damaged.
    """
    description, model = read_description(run), read or read_model(run)
    if not any(name.startswith(TASK_PREFIX) for name in model.parameters):
        raise InputError(f"{model.source}: has no output layer ({TASK_PREFIX}...); give a fine-tuned model")
    longest, most = description.settings.input.max_seq_len, model.config.max_position_embeddings
    reason = f"the model has {most} positions, but {FILE_NAME} settings.input.max_seq_len {longest}"
    require(longest <= most, str(model.source), reason)
    tokenizer = Tokenizer(model.vocabulary, description.segmenter)
    return LoadedModel(**vars(description), source=model.source, tokenizer=tokenizer, model=model)
