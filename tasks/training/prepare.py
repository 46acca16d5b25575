"""Check a fine-tuning before it starts: the task, its files, the model, the output folder, a checkpoint to resume from.

Nothing here imports Paddle, so that errors are reported before it loads.
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import IO, Any

import numpy as np

from ernie_gram.config.checks import require
from ernie_gram.config.loading import explained_yaml
from ernie_gram.formats.digest import digest_of
from ernie_gram.formats.model import Model
from ernie_gram.formats.registry import read_model
from ernie_gram.formats.vocabularies import write_vocabulary
from ernie_gram.run.run_folder import CONFIG, Identity, lock_output, resume_checkpoint
from reader.corpus.memmap import LEXICON
from reader.lexicon.lexicon_file import Lexicon, segmenter_of
from reader.system.atomic_files import atomic_file
from reader.tokenization.tokenizer import Tokenizer
from reader.tokenization.wordpiece import WordPieceVocabulary
from tasks.data.batches import epoch_batches, epoch_steps, padding_share
from tasks.kinds.base import Float32s, Kind
from tasks.kinds.catalog import kind_of
from tasks.metrics.catalog import METRICS
from tasks.reading.load import with_labels
from tasks.registry.task import TRAIN, Task
from tasks.registry.task_file import find_task
from tasks.training.config import FinetuneConfig
from tasks.training.description import Description, write_description
from tasks.training.splits import Say, SplitData, dev_splits, final_splits, load_splits, unseen_labels

RESULT, SKIPPED, CURVES = "result.json", "skipped_rows.txt", "curves.png"
PREDICTIONS = "predictions_"
# With more samples in a batch than this share of an epoch, --check warns.
LARGE_SHARE = 0.2


@dataclass(frozen=True)
class Run:
    """A checked run.

    Attributes:
        config: its settings.
        output: its folder.
        model: the given model.
        kind: the kind of the task, for this task.
        tokenizer: of the model's vocabulary.
        train: the training data.
        dev: the splits that are evaluated during training; the first one chooses the best evaluation.
        final: the other labelled splits, which are evaluated at the end.
        figure: the figure that chooses the best evaluation.
        identity: everything that can change the result; checkpoints to resume from must match it.
        resume_from: a checkpoint that rank 0 has verified, or None to start from step 0.
        seconds: wall time of reading and encoding the data.
    """

    config: FinetuneConfig
    output: Path
    model: Model
    kind: Kind[Any, Any]
    tokenizer: Tokenizer
    train: SplitData
    dev: tuple[SplitData, ...]
    final: tuple[SplitData, ...]
    figure: str
    identity: Identity
    resume_from: Path | None
    seconds: float

    @property
    def task(self) -> Task:
        """The task, with its labels."""
        return self.kind.task

    @cached_property
    def epoch_steps(self) -> int:
        """Steps of an epoch."""
        return epoch_steps(len(self.train.features), self.config.optimizer.batch_size)

    @property
    def max_steps(self) -> int:
        """Steps of the whole training."""
        return self.config.optimizer.epochs * self.epoch_steps

    @property
    def lexicon(self) -> Lexicon | None:
        """The lexicon of the model, if the tokens depend on it."""
        return None if isinstance(self.model.vocabulary, WordPieceVocabulary) else self.model.lexicon

    def describe(self) -> list[str]:
        """Return a summary of the run as lines for the console."""
        config, settings = self.config, self.config.optimizer
        batches = epoch_batches(self.train.features.lengths, settings.batch_size, config.seed, 0)
        padding = padding_share(self.train.features, batches)
        shape = self.model.config
        epochs = f"{settings.epochs} epochs" if settings.epochs > 1 else "1 epoch"
        start = f"resumes from {self.resume_from}" if self.resume_from else "starts from step 0"
        return [
            f"model    {self.model.source} ({self.model.format}): {shape.num_hidden_layers} layers, "
            f"{shape.hidden_size} wide, {len(self.model.vocabulary or ()):,} tokens",
            *(f"note     {note}" for note in self.model.notes),
            f"training {self.max_steps:,} steps of {settings.batch_size:,} samples, {epochs}; "
            f"{padding:.1%} of the slots are padding",
            f"output   {self.output}: {start}",
        ]

    def warnings(self) -> list[str]:
        """Return one line for each thing that is valid but unlikely to be meant."""
        lines = unseen_labels((*self.dev, *self.final), self.train)
        if self.config.optimizer.batch_size > LARGE_SHARE * len(self.train.features):
            lines.append(
                f"optimizer.batch_size: an epoch of {len(self.train.features):,} samples has only {self.epoch_steps} "
                "steps"
            )
        if self.dev and not self.dev[0].name.startswith("dev"):
            lines.append(f"the task has no dev split: checkpoints are chosen on the split {self.dev[0].name!r}")
        return lines

    def claim_output(self) -> IO[str]:
        """Lock the output folder, and write into it what is needed beside the parameters to use the model.

        Results of an earlier training are removed. Returns the lock, see `lock_output`.
        """
        lock = lock_output(self.output)
        for path in (self.output / RESULT, self.output / SKIPPED, *self.output.glob(f"{PREDICTIONS}*")):
            path.unlink(missing_ok=True)
        with atomic_file(self.output / CONFIG) as partial:
            partial.write_text(explained_yaml(self.config), encoding="utf-8")
        write_vocabulary(self.model.vocabulary, self.output)
        if self.lexicon:
            self.lexicon.save(self.output / LEXICON)
        description = Description(
            self.task, self.config.kind_settings, self.tokenizer.segmenter, self.config.optimizer.precision
        )
        own = Path(self.config.task) if Path(self.config.task).is_file() else None
        write_description(self.output, description, own)
        skipped = [line for split in (self.train, *self.dev, *self.final) for line in _skipped(split)]
        if skipped:
            with atomic_file(self.output / SKIPPED) as partial:
                partial.write_text("".join(f"{line}\n" for line in skipped), encoding="utf-8")
        return lock


def prepare(config: FinetuneConfig, world_size: int = 1, rank: int = 0, say: Say = lambda line: None) -> Run:
    """Check everything that process `rank` of a run on `world_size` processes needs.

    Args:
        say: is called with lines for the console.
    Raises InputError that names the key or file at fault.
    """
    began = time.monotonic()
    require(bool(config.task), "task", "must be given: `python -m tasks.list` shows the tasks")
    require(bool(config.paths.model), "paths.model", "must be given: the folder of the model to start from")
    require(bool(config.paths.data), "paths.data", "must be given: the folder with the files of the task")
    task = find_task(config.task)
    output = Path(config.paths.output or f"output/{task.name}")
    model = read_model(Path(config.paths.model))
    _check_model(config, model)
    assert model.vocabulary is not None
    data = Path(config.paths.data)
    kind = kind_of(with_labels(task, data, config.on_bad_row), config.kind_settings)
    tokenizer = Tokenizer(model.vocabulary, segmenter_of(model.lexicon))
    during, finally_ = dev_splits(kind.task, data), final_splits(kind.task, data)
    splits = load_splits(kind, data, (TRAIN, *during, *finally_), tokenizer, config.on_bad_row, say)
    train, dev = splits[TRAIN], tuple(splits[name] for name in during)
    size, batch_size = len(train.features), config.optimizer.batch_size
    least = size // epoch_steps(size, batch_size)
    require(
        world_size <= least,
        "optimizer.batch_size",
        f"{world_size} processes, but only {least} samples in a batch; use fewer processes",
    )
    figure = _figure(config, kind, dev)
    identity = _identity(config, kind, model, (train, *dev))
    seconds = time.monotonic() - began
    resume_from = resume_checkpoint(output, config.trainer.resume, identity, rank == 0)
    final = tuple(splits[name] for name in finally_)
    return Run(config, output, model, kind, tokenizer, train, dev, final, figure, identity, resume_from, seconds)


def _check_model(config: FinetuneConfig, model: Model) -> None:
    """Raise InputError unless a model can be fine-tuned with these settings."""
    require(model.vocabulary is not None, "paths.model", f"{model.source} has no vocabulary; put its vocab.txt there")
    positions = len(model.parameters["pos_embedding"])
    require(
        config.input.max_seq_len <= positions,
        "input.max_seq_len",
        f"{config.input.max_seq_len} exceeds the {positions} positions of {model.source}",
    )


def _figure(config: FinetuneConfig, kind: Kind[Any, Any], dev: tuple[SplitData, ...]) -> str:
    """Return the name of the figure that chooses the best evaluation; raises InputError if the metric has no such."""
    metric = METRICS[kind.task.metric]
    figure = config.evaluation.metric
    require(bool(dev) or figure is None, "evaluation.metric", f"{kind.task.name} has no labelled dev split here")
    require(
        bool(dev) or config.evaluation.patience is None,
        "evaluation.patience",
        f"{kind.task.name} has no labelled dev split here",
    )
    if figure is None or figure == metric.main:
        return metric.main
    # Which figures there are may depend on the data. Any scores will do to find out.
    scores: Float32s = np.zeros((dev[0].features.num_units, kind.width), np.float32)
    known = kind.figures(kind.decode(scores, dev[0].features, dev[0].examples), dev[0].examples)
    require(figure in known, "evaluation.metric", f"{figure!r} is none of the figures of {metric.name}: {[*known]}")
    return figure


def _identity(config: FinetuneConfig, kind: Kind[Any, Any], model: Model, splits: tuple[SplitData, ...]) -> Identity:
    """Return everything that can change the result of a run."""
    assert model.vocabulary is not None
    task = kind.task
    definition = hashlib.sha256(repr(replace(task, title="")).encode()).hexdigest()
    keeps_lexicon = model.lexicon is not None and not isinstance(model.vocabulary, WordPieceVocabulary)
    return {
        "task": f"{task.name} ({definition[:16]})",
        **config.identity(),
        "model": digest_of(model.parameters),
        "vocabulary": model.vocabulary.fingerprint,
        "lexicon": model.lexicon.fingerprint if model.lexicon is not None and keeps_lexicon else None,
        **{f"data.{split.name}": split.digest for split in splits},
    }


def _skipped(split: SplitData) -> list[str]:
    return [f"{split.name}\t{place}\t{reason}" for place, reason in split.report.bad]
