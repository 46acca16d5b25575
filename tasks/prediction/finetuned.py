"""A fine-tuned model: its task, its settings, its tokenizer, its parameters. Nothing here imports Paddle."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ernie_gram.config.checks import require
from ernie_gram.formats.heads import TASK_PREFIX
from ernie_gram.formats.model import Model
from ernie_gram.formats.registry import read_model
from ernie_gram.inference.description import DESCRIPTION, FILL_MASK, load_description
from ernie_gram.run.run_folder import RESULT
from reader.errors import InputError
from reader.system.untrusted_text import json_value, limited_text
from reader.tokenization.tokenizer import Tokenizer
from reader.tokenization.vocabulary_file import load_vocabulary
from tasks.data.examples import Example
from tasks.data.features import Features
from tasks.kinds.base import Kind
from tasks.kinds.catalog import kind_of
from tasks.kinds.task import Task
from tasks.training.description import Description, described_folder, read_description
from tasks.training.prepare import NULL_THRESHOLD

# The value of `outputs` in the description of an exported program (see ernie_gram/inference/description.py).
TASK_SCORES = "task_scores"
# The precisions of predictions that can be asked for.
PRECISIONS = ("float32", "bfloat16")


@dataclass(frozen=True)
class LoadedModel:
    """A fine-tuned model.

    Attributes:
        source: the folder of the checkpoint or of the exported program.
        description: its task, with labels, and the settings of its kind.
        tokenizer: the tokenizer of its training.
        model: its parameters, including those of the output layer; None for an exported program, which contains them.
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
    def notes(self) -> list[str]:
        """What was changed or passed over while reading, one line each, with the folder's name."""
        return [f"{self.source}: {note}" for note in self.model.notes] if self.model else []

    @property
    def kind(self) -> Kind[Any, Any]:
        """The kind of the task."""
        return kind_of(self.task, self.description.settings)

    def encode(self, examples: Sequence[Example]) -> Features:
        """Return the features of examples, for prediction."""
        features: Features = self.kind.encode(examples, self.tokenizer, training=False)
        return features

    def with_precision(self, precision: str, key: str = "precision") -> LoadedModel:
        """Return the model with another of PRECISIONS for matrix products.

        Raises InputError, which names `key`, for another value than these, and for an exported program of another one.
        """
        require(precision in PRECISIONS, key, f"{precision!r}: give {' or '.join(PRECISIONS)}")
        own = self.description.precision
        is_possible = self.model is not None or precision == own
        require(is_possible, key, f"an exported program has its own, {own}; leave it out")
        return replace(self, description=replace(self.description, precision=precision))

    def with_null_threshold(self, threshold: float | None) -> LoadedModel:
        """Return the model with another threshold for "no answer" (see SpanSettings)."""
        settings = self.description.settings.with_null_threshold(threshold)
        return replace(self, description=replace(self.description, settings=settings))


def load_finetuned(run: Path, checkpoint: Path | None = None) -> LoadedModel:
    """Return the fine-tuned model of a run, or of an exported program (see tasks/export.py).

    Args:
        run: the run's folder, of which the best model is read, or else the newest checkpoint; or one checkpoint; or the
            folder of an exported program.
        checkpoint: another checkpoint of this run, as a path or as its name in the run's folder; or None.

    Raises InputError that names the folder or file if it is not that of a fine-tuned model, or if it is damaged.
    """
    if (run / DESCRIPTION).is_file():
        require(checkpoint is None, "--checkpoint", f"{run} is an exported program and has none; leave it out")
        exported = load_description(run)
        if exported.outputs != TASK_SCORES:
            command = "fill-mask" if exported.outputs == FILL_MASK else "infer"
            raise InputError(f"{run}: has {exported.outputs} outputs, not those of a task; use ernie-gram {command}")
        description, model = read_description(run), None
        vocabulary = load_vocabulary(run / exported.text.vocabulary, exported.text.lowercase)
    else:
        description, model = read_description(run), read_model(_checkpoint_of(run, checkpoint) if checkpoint else run)
        if not any(name.startswith(TASK_PREFIX) for name in model.parameters):
            raise InputError(f"{model.source}: has no output layer ({TASK_PREFIX}...); give a fine-tuned model")
        vocabulary = model.vocabulary
    return LoadedModel(model.source if model else run, description, Tokenizer(vocabulary, description.segmenter), model)


def _checkpoint_of(run: Path, checkpoint: Path) -> Path:
    folder = described_folder(run)
    found = next((path for path in (checkpoint, folder / checkpoint) if path.is_dir()), None)
    if found is None:
        raise InputError(f"{checkpoint}: no such folder, nor one of this name in {folder}")
    if found.resolve().parent != folder.resolve():
        raise InputError(f"--checkpoint: {checkpoint} is not a checkpoint of {run}; give one that is in its folder")
    return found


def with_null_threshold_of(finetuned: LoadedModel, run: Path, warn: Callable[[str], None]) -> LoadedModel:
    """Return a model with the threshold for "no answer" of its run, unless it has one or needs none.

    Args:
        run: the run's folder, or a checkpoint in it. The threshold is that of the run's chosen model, chosen on its
            first dev split. If the run has no result, it is 0, and `warn` is called with a line.
    """
    if not finetuned.task.unanswerable or finetuned.description.settings.span.null_threshold is not None:
        return finetuned
    threshold = null_threshold_of(run)
    if threshold is None:
        warn(f'{run}: no {RESULT} with a threshold for "no answer": 0 is used')
    return finetuned.with_null_threshold(threshold or 0.0)


def null_threshold_of(run: Path) -> float | None:
    """Return the threshold for "no answer" in the result of a run; None without one."""
    try:
        return float(json_value(limited_text(described_folder(run) / RESULT))[NULL_THRESHOLD])
    except (InputError, OSError, ValueError, KeyError, TypeError):
        return None
