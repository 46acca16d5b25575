"""A fine-tuned model: its task, its settings, its tokenizer, its parameters. Nothing here imports Paddle."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ernie_gram.formats.heads import TASK_PREFIX
from ernie_gram.formats.model import Model
from ernie_gram.formats.registry import read_model
from ernie_gram.inference.description import DESCRIPTION, load_description
from reader.errors import InputError
from reader.tokenization.tokenizer import Tokenizer
from reader.tokenization.vocabulary_file import load_vocabulary
from tasks.data.examples import Example
from tasks.data.features import Features
from tasks.kinds.base import Kind
from tasks.kinds.catalog import kind_of
from tasks.kinds.settings import KindSettings
from tasks.registry.task import Task
from tasks.training.description import Description, read_description
from tasks.training.prepare import RESULT

# The kind of outputs of an exported program, as ernie_gram/inference calls it.
TASK_SCORES = "task_scores"
# The figure of SQuAD 2.0's metric that gives the threshold with the best F1.
BEST_THRESHOLD = "best_f1_thresh"


@dataclass(frozen=True)
class Finetuned:
    """A fine-tuned model.

    Attributes:
        source: the folder of the checkpoint or of the exported program.
        description: its task, with labels, and the settings of its kind.
        tokenizer: as in training.
        model: its parameters include those of the output layer; None for an exported program, which holds them itself.
    """

    source: Path
    description: Description
    tokenizer: Tokenizer
    model: Model | None

    @property
    def task(self) -> Task:
        """The task, with its labels."""
        return self.description.task

    @property
    def kind(self) -> Kind[Any, Any]:
        """The kind of the task."""
        return kind_of(self.task, self.description.settings)

    def encode(self, examples: Sequence[Example]) -> Features:
        """Return the features of examples, for prediction."""
        features: Features = self.kind.encode(examples, self.tokenizer, training=False)
        return features

    def with_null_threshold(self, threshold: float | None) -> Finetuned:
        """Return the model with another threshold for "no answer" (see SpanSettings)."""
        settings = self.description.settings
        changed = replace(settings, span=replace(settings.span, null_threshold=threshold))
        return replace(self, description=replace(self.description, settings=changed))


def load_finetuned(run: Path, checkpoint: Path | None = None) -> Finetuned:
    """Return the fine-tuned model of a run.

    Args:
        run: the run's folder, of which the best model is read, or else the newest checkpoint; or one checkpoint.
        checkpoint: another checkpoint of this run, or None.

    Raises InputError that names the folder or file if it is not that of a fine-tuned model, or if it is damaged.
    """
    description = read_description(run)
    model = read_model(checkpoint or run)
    if not any(name.startswith(TASK_PREFIX) for name in model.parameters):
        raise InputError(f"{model.source}: has no output layer ({TASK_PREFIX}...); give a fine-tuned model")
    assert model.vocabulary is not None, "runs keep their vocabulary"
    return Finetuned(model.source, description, Tokenizer(model.vocabulary, description.segmenter), model)


def is_exported(folder: Path) -> bool:
    """Return whether a folder is an exported program."""
    return (folder / DESCRIPTION).is_file()


def load_exported(folder: Path) -> Finetuned:
    """Return the fine-tuned model of an exported program (see tasks.export).

    Raises InputError that names the folder or file if it is not that of a fine-tuned model, or if it is damaged.
    """
    exported = load_description(folder)
    if exported.outputs != TASK_SCORES:
        raise InputError(
            f"{folder}: has {exported.outputs} outputs, not those of a task; use python -m ernie_gram.infer"
        )
    description = read_description(folder)
    vocabulary = load_vocabulary(folder / exported.text.vocabulary, exported.text.lowercase)
    return Finetuned(folder, description, Tokenizer(vocabulary, description.segmenter), None)


def best_null_threshold(run: Path) -> float | None:
    """Return the threshold with the best F1 on the first dev split of a finished run; None if its result has none."""
    try:
        figures = json.loads((run / RESULT).read_text(encoding="utf-8"))["figures"]
        threshold = next(iter(figures.values()))[BEST_THRESHOLD]
    except (OSError, ValueError, KeyError, StopIteration, TypeError, AttributeError):
        return None
    return float(threshold)


def sets_null_threshold(task: Task, settings: KindSettings) -> bool:
    """Return whether a threshold for "no answer" is still to be chosen."""
    return task.unanswerable and settings.span.null_threshold is None
