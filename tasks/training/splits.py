"""The splits of a task as a fine-tuning uses them: read, encoded and counted."""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from reader.errors import InputError, counted
from reader.tokenization.tokenizer import Tokenizer
from reader.tokenization.vocabulary import unknown_share
from tasks.data.examples import Example
from tasks.data.features import Features
from tasks.kinds.base import Kind
from tasks.kinds.catalog import kind_of
from tasks.kinds.settings import KindSettings
from tasks.kinds.task import TRAIN, Task
from tasks.reading.load import OnBadRow, Report, labelled_by, load_split
from tasks.reading.official_files import available_splits, file_digests

# Bad rows that are listed on the console; all are in the run's folder.
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
        seconds: wall time of reading, and of encoding.
    """

    name: str
    examples: list[Example]
    features: Features
    report: Report
    unknown: float = 0.0
    seconds: tuple[float, float] = (0.0, 0.0)

    @property
    def digest(self) -> str:
        """The SHA-256 of the contents of the split's files."""
        return digest_of_files(self.report.files)

    def describe(self) -> list[str]:
        """Return lines with the number of rows, of examples and of samples, the time, and the unusual rows."""
        report, features = self.report, self.features
        skipped = f", {counted(len(report.bad), 'bad row')} skipped" if report.bad else ""
        omitted = f", {len(report.omitted):,} left out" if report.omitted else ""
        changed = "".join(f"; {what}: {count:,}" for what, count in features.counts.items() if count)
        kept = f"{len(self.examples):,} of " if len(self.examples) < report.examples else ""
        read = f"{counted(report.rows, 'row')}: {kept}{counted(report.examples, 'example')}{omitted}{skipped}"
        reading, encoding = self.seconds
        speed = len(self.examples) / max(encoding, 1e-9)
        return [
            f"{self.name:<8} {read}; {counted(len(features), 'sample')}, "
            f"{counted(len(features.inputs), 'input')} with "
            f"{features.inputs.lengths.mean():.0f} tokens on average, {self.unknown:.2%} [UNK]{changed}",
            f"         read in {reading:.1f} s, encoded in {encoding:.1f} s ({speed:,.0f} examples/s)",
            *report.lines(MAX_LISTED)[1:],
        ]


def digest_of_files(files: Iterable[Path]) -> str:
    """Return the SHA-256 of the contents of some files, and of the texts in folders."""
    digest = hashlib.sha256()
    for inside, content in file_digests(files):
        digest.update(f"{inside} {content}\n".encode())
    return digest.hexdigest()


def evaluated_splits(task: Task, folder: Path) -> tuple[list[str], list[str]]:
    """Return the labelled splits in the folder on which a model is evaluated during training, and only at the end.

    During training, these are the dev splits; for a task without dev splits, the labelled test splits.
    """
    there = [name for name in available_splits(task, folder) if name in task.evaluation_splits]
    during = [name for name in there if name.startswith("dev")] or there
    return during, [name for name in there if name not in during]


def load_splits(
    task: Task,
    settings: KindSettings,
    folder: Path,
    evaluated: Iterable[str],
    tokenizer: Tokenizer,
    on_bad_row: OnBadRow,
    max_train_examples: int | None,
) -> tuple[Kind[Any, Any], dict[str, SplitData]]:
    """Read and encode the training split and others; return the kind of the task, with its labels, and the splits.

    Of the training split, at most `max_train_examples` are kept, see `spread_evenly`. Raises InputError that names file
    and line as `load_split` does.
    """
    splits: dict[str, SplitData] = {}
    for name in (TRAIN, *evaluated):
        began = time.monotonic()
        examples, report = load_split(task, folder, name, on_bad_row)
        if name == TRAIN:
            task = labelled_by(task, examples)
            kind = kind_of(task, settings)
            examples = spread_evenly(kind, examples, max_train_examples)
        read = time.monotonic()
        features = kind.encode(examples, tokenizer, training=name == TRAIN)
        if not len(features):
            raise InputError(f"{report.files[0]}: no example has anything to train on")
        counts = np.bincount(features.inputs.tokens, minlength=len(tokenizer.vocabulary))
        unknown = unknown_share(counts, tokenizer.vocabulary)
        seconds = read - began, time.monotonic() - read
        splits[name] = SplitData(name, examples, features, report, unknown, seconds)
    return kind, splits


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
    whole = _labels(kind, examples)
    distances = [_label_distance(_labels(kind, each), whole) for each in (first, drawn)]
    return drawn if distances[0] > distances[1] + CLOSE else first


def _label_distance(labels: Counter[str], others: Counter[str]) -> float:
    """Return the total variation distance between the shares of the labels, from 0 to 1."""
    totals = max(labels.total(), 1), max(others.total(), 1)
    return sum(abs(labels[label] / totals[0] - others[label] / totals[1]) for label in labels | others) / 2


def unseen_labels(kind: Kind[Any, Any], splits: Iterable[SplitData], train: SplitData) -> list[str]:
    """Return a line for each label, or type of entity, that occurs in a split but in no training example."""
    counts = {split.name: _labels(kind, split.examples) for split in splits}
    seen = _labels(kind, train.examples)
    return [
        f"{name}: {counted(count, 'example')} with {kind.label_is} {label!r}, which no training example has"
        for name, labels in counts.items()
        for label, count in labels.items()
        if label not in seen
    ]


def _labels(kind: Kind[Any, Any], examples: Sequence[Example]) -> Counter[str]:
    """Return the number of examples that have each label, or entities of each type."""
    return Counter(label for example in examples for label in kind.labels_of(example))
