"""The data of a task as a fine-tuning uses them: read, encoded, counted, checked against the model; and its batches.

The batches of training are a pure function of (seed, step), and a rank reads its share of each, so that a resumed run
reads the same batches, on any number of processes.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ernie_gram.config import require
from ernie_gram.formats.model import ModelRecord
from ernie_gram.run.run_folder import Identity
from reader.batches.sampler import rank_share
from reader.errors import InputError, counted, located
from reader.lexicon.lexicon_file import segmenter_of
from reader.system.arrays import Float32s, Int64s
from reader.tokenization.tokenizer import Tokenizer
from reader.tokenization.vocabulary import unknown_share
from tasks.files.official import Report, available_splits, digest_of_files, find_files, labelled_by, load_split
from tasks.kinds.base import Example, Kind
from tasks.kinds.catalog import kind_of
from tasks.kinds.features import Features
from tasks.kinds.task import TRAIN, Task
from tasks.registry import find_task
from tasks.training.config import FinetuneConfig

# The variable with the path of shared data, for the processes that this one starts.
SHARED = "ERNIE_GRAM_PREPARED"
# Bad rows that are listed on the console; `ernie-gram check-files` lists all.
MAX_LISTED = 10
# A larger difference of two distances between shares of labels is rarely by chance, except for a few examples.
CLOSE = 0.1


@dataclass(frozen=True, eq=False)
class SplitData:
    """A split that was read and encoded.

    Attributes:
        name: the name of the split.
        examples: in the order of the files.
        features: the features of the examples.
        report: how many rows were read, left out and skipped.
        unknown: the share of [UNK] in the tokens of the texts.
    """

    name: str
    examples: list[Example]
    features: Features
    report: Report
    unknown: float = 0.0

    def describe(self) -> list[str]:
        """Return lines with the number of rows, of examples and of samples, and the unusual rows."""
        report, features = self.report, self.features
        changed = "".join(f"; {what}: {count:,}" for what, count in features.counts.items() if count)
        kept = f"{len(self.examples):,} of " if len(self.examples) < report.examples else ""
        read = f"{counted(report.rows, 'row')}: {kept}{counted(report.examples, 'example')}"
        return [
            f"{self.name:<8} {read}; {counted(len(features), 'sample')}, "
            f"{counted(len(features.inputs), 'input')} with "
            f"{features.inputs.lengths.mean():.0f} tokens on average, {self.unknown:.2%} [UNK]{changed}",
            *report.lines(MAX_LISTED)[1:],
        ]


@dataclass(frozen=True)
class TaskData:
    """The data of a task, read and encoded.

    Attributes:
        kind: the kind of the task, for this task.
        train: the training data.
        dev: the splits that are evaluated during training; the first one chooses the best evaluation.
        final: the other labelled splits, which are evaluated at the end.
        digests: of the task and of the files of the splits, see `file_digests`.
    """

    kind: Kind[Any, Any]
    train: SplitData
    dev: tuple[SplitData, ...]
    final: tuple[SplitData, ...]
    digests: Identity

    @property
    def task(self) -> Task:
        """The task, with its labels."""
        return self.kind.task

    @property
    def evaluated(self) -> tuple[SplitData, ...]:
        """The labelled splits other than the training data."""
        return (*self.dev, *self.final)

    @property
    def splits(self) -> tuple[SplitData, ...]:
        """All splits."""
        return (self.train, *self.evaluated)


def read_data(config: FinetuneConfig, model: ModelRecord, world_size: int) -> TaskData:
    """Read and encode the labelled splits, and check that the model and the settings suit them.

    Raises InputError that names file and line as `load_split` does.
    """
    task, tokenizer = find_task(config.task), Tokenizer(model.vocabulary, segmenter_of(model.lexicon))
    folder, splits = Path(config.paths.data), dict[str, SplitData]()
    during, at_end = evaluated_splits(task, folder)
    for name in (TRAIN, *during, *at_end):
        examples, report = load_split(task, folder, name, config.on_bad_row)
        if name == TRAIN:
            task = labelled_by(task, examples)
            kind = kind_of(task, config.kind_settings)
            examples = spread_evenly(kind, examples, config.max_train_examples)
        features = kind.encode(examples, tokenizer, training=name == TRAIN)
        if not len(features):
            raise InputError(f"{report.files[0]}: no example has anything to train on")
        counts = np.bincount(features.inputs.tokens, minlength=len(tokenizer.vocabulary))
        unknown = unknown_share(counts, tokenizer.vocabulary)
        splits[name] = SplitData(name, examples, features, report, unknown)
    train = splits[TRAIN]
    inputs = [split.features.inputs for split in splits.values()]
    require(
        model.config.has_sentence_types or not any((each.seconds < each.lengths).any() for each in inputs),
        "paths.model",
        f"{model.source} has one sentence type (type_vocab_size), but this task has pairs of texts; give another model",
    )
    least = len(train.features) // epoch_steps(len(train.features), config.optimizer.batch_size)
    require(
        world_size <= least,
        "optimizer.batch_size",
        f"{world_size} processes, but only {counted(least, 'sample')} in a batch; use fewer processes",
    )
    dev, final = (tuple(splits[name] for name in names) for names in (during, at_end))
    for split in (*dev, *final):
        check_metric(kind, split)
    return TaskData(kind, train, dev, final, file_digests(task, folder))


def evaluated_splits(task: Task, folder: Path) -> tuple[list[str], list[str]]:
    """Return the labelled splits in the folder on which a model is evaluated during training, and only at the end.

    During training, these are the dev splits; for a task without dev splits, the labelled test splits.
    """
    there = [name for name in available_splits(task, folder) if name in task.evaluation_splits]
    during = [name for name in there if name.startswith("dev")] or there
    return during, [name for name in there if name not in during]


def file_digests(task: Task, folder: Path) -> Identity:
    """Return digests of a task that has its labels, and of the files of its labelled splits in a folder."""
    during, at_end = evaluated_splits(task, folder)
    splits = (TRAIN, *during, *at_end)
    digests = {f"data.{split}": digest_of_files(find_files(task, folder, split)[0]) for split in splits}
    definition = hashlib.sha256(repr(replace(task, title="")).encode()).hexdigest()
    return {"task": f"{task.name} ({definition[:16]})", **digests}


def spread_evenly(kind: Kind[Any, Any], examples: list[Example], limit: int | None) -> list[Example]:
    """Return at most `limit` examples, one of each of `limit` equal parts of the list; None means all.

    Files are often ordered by label. If their labels are in turn instead, the first examples of the parts may all have
    the same one; then an example of each part is drawn, always the same ones.
    """
    count = len(examples)
    if limit is None or limit >= count:
        return examples
    bounds = np.arange(limit + 1) * count // limit
    places = bounds[:-1], np.random.default_rng(0).integers(bounds[:-1], bounds[1:])
    first, drawn = ([examples[i] for i in each] for each in places)
    distances = [_label_distance(kind, each, examples) for each in (first, drawn)]
    return drawn if distances[0] > distances[1] + CLOSE else first


def _label_distance(kind: Kind[Any, Any], *samples: Sequence[Example]) -> float:
    """Return the total variation distance between the shares of the labels in two samples, from 0 to 1."""
    labels, others = (Counter(label for each in sample for label in kind.labels_of(each)) for sample in samples)
    totals = max(labels.total(), 1), max(others.total(), 1)
    return sum(abs(labels[label] / totals[0] - others[label] / totals[1]) for label in labels | others) / 2


def check_metric(kind: Kind[Any, Any], split: SplitData) -> None:
    """Raise InputError that names the files if the metric of a task does not fit a split.

    It does if it can score a network that always chooses the last class.
    """
    scores: Float32s = np.zeros((split.features.num_units, kind.width), np.float32)
    scores[:, -1] = 1
    with located(f"{', '.join(map(str, split.report.files))}: the metric {kind.task.metric} does not fit"):
        kind.evaluate(kind.decode(scores, split.features, split.examples))


def share(data: Any) -> None:
    """Let the processes that this one starts take the data, so that they are read once.

    They are a pickle in an unnamed file, which this process holds open, so that nothing is left when the job has ended,
    and nobody else can put a file there. If the disk is full, each process reads the data for itself.
    """
    with suppress(OSError), tempfile.TemporaryFile() as file:
        pickle.dump(data, file, pickle.HIGHEST_PROTOCOL)
        file.flush()
        os.environ[SHARED] = f"/proc/{os.getpid()}/fd/{os.dup(file.fileno())}"


def shared() -> Any:
    """Return what the launcher of this process has shared; None if there is no such value."""
    if path := os.environ.get(SHARED):
        with open(path, "rb") as file:
            return pickle.load(file)
    return None


def epoch_steps(num_samples: int, batch_size: int) -> int:
    """Return the number of batches of an epoch."""
    return -(-num_samples // batch_size)


def epoch_batches(lengths: Int64s, batch_size: int, length_pool: int, seed: int, epoch: int) -> list[Int64s]:
    """Return the batches of an epoch, as indices of samples, int64 [at most batch_size]. Each sample is in one batch.

    Samples are drawn at random, and sorted by length within pools of `length_pool` batches. The sizes of the batches
    differ by at most one. Otherwise the last batch of an epoch might be a single sample, which would weigh as much as a
    full batch and leave nothing for some of the processes.
    """
    random = np.random.default_rng([seed, epoch])
    order = random.permutation(len(lengths))
    steps = epoch_steps(len(lengths), batch_size)
    bounds = np.arange(steps + 1) * len(lengths) // steps
    batches: list[Int64s] = []
    for first in range(0, steps, length_pool):
        pool_bounds = bounds[first : first + length_pool + 1]
        pool = order[pool_bounds[0] : pool_bounds[-1]]
        pool = pool[np.argsort(lengths[pool], kind="stable")]
        batches += np.split(pool, pool_bounds[1:-1] - pool_bounds[0])
    # Shuffle within batches too, so that the last rank does not always get the longest samples.
    return [random.permutation(batches[i]) for i in random.permutation(len(batches))]


def rank_batches(
    lengths: Int64s, batch_size: int, length_pool: int, seed: int, first_step: int, rank: int, world: int
) -> Iterator[Int64s]:
    """Yield one rank's share of the batches of all steps from `first_step`, without end."""
    steps = epoch_steps(len(lengths), batch_size)
    epoch, skipped = divmod(first_step, steps)
    while True:
        for batch in epoch_batches(lengths, batch_size, length_pool, seed, epoch)[skipped:]:
            first, last = rank_share(len(batch), rank, world)
            yield batch[first:last]
        epoch, skipped = epoch + 1, 0


def micro_batches(lengths: Int64s, samples: Int64s, steps: int) -> list[Int64s]:
    """Divide a rank's samples of a batch into at most `steps` micro-batches, whose sizes differ by at most one.

    Samples of similar length are put together. This only reduces padding: the gradients of all parts are added.
    """
    if steps == 1:
        return [samples]
    parts = np.array_split(samples[np.argsort(lengths[samples], kind="stable")], steps)
    return [part for part in parts if len(part)]


def evaluation_batches(lengths: Int64s, batch_size: int) -> list[Int64s]:
    """Return batches of all samples, the longest first, so that memory is allocated once; the last one may be smaller.

    They do not depend on the number of processes: whole batches are divided among ranks, so that every score is
    computed from the same numbers by the same program on any number of processes.
    """
    order = np.argsort(-lengths, kind="stable")
    return [order[first : first + batch_size] for first in range(0, len(order), batch_size)]
