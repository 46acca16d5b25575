"""The description of a task: a row of the registry, or the content of a user's YAML file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

from reader.errors import InputError, quoted
from reader.system.untrusted_text import FILE_NAME
from tasks.layouts.rows import Layout

Language: TypeAlias = Literal["en", "zh"]
LANGUAGES: tuple[Language, ...] = get_args(Language)
TRAIN = "train"


@dataclass(frozen=True)
class Source:
    """Files that are read together, in order, as one split; a name may be that of a folder.

    Attributes:
        files: paths relative to the task's folder.
        layout: None if it is the task's layout.
    """

    files: tuple[str, ...]
    layout: Layout | None = None


@dataclass(frozen=True)
class Split:
    """The files of a split.

    Attributes:
        sources: in order of preference; the first of which all files exist is read.
        labelled: whether the files have gold values. Official test files mostly have none: they are for submissions.
        needed: whether missing files are an error. Splits of official tasks may be missing.
    """

    sources: tuple[Source, ...]
    labelled: bool = True
    # Not in repr(task), which identifies a task in its runs (see training/prepare.py).
    needed: bool = field(default=False, repr=False, compare=False)


@dataclass(frozen=True)
class Task:
    """A task.

    Attributes:
        name: what the command line calls the task; title: what papers call it.
        kind: the name of its kind (see kinds/catalog.py).
        metric: the name of the metric, which gives all scores of the task and selects the best checkpoint.
        layout: reads the files.
        splits: by name; `train`, those that are evaluated on, and those without labels.
        folders: possible names of the folder with the files below the folder that the user gives.
        labels: the classes in the official spelling, or the types of entities; None for kinds without labels, and if
            they are to be found in the training file (see `load.with_labels`).
        labels_of: where the labels come from, for errors.
        label_aliases: other spelling -> official spelling.
        omitted_labels: rows with these labels have no gold label and are left out, as by the official baselines.
        score_range: the least and the greatest score of a regression.
        unanswerable: whether questions may have no answer in their context.
        empty_texts: whether empty texts are read, because the official files hold a few (QQP); otherwise a labelled row
            with one is bad.
        submission: the name of the form of a submission; None if the benchmark takes none.
        submission_name: what the benchmark calls the task in the names of submitted files; None if it is `name`.
    """

    name: str
    title: str
    language: Language
    kind: str
    metric: str
    layout: Layout
    splits: Mapping[str, Split]
    folders: tuple[str, ...] = ()
    labels: tuple[str, ...] | None = None
    labels_of: str = "the task's"
    label_aliases: Mapping[str, str] = field(default_factory=dict)
    omitted_labels: tuple[str, ...] = ()
    score_range: tuple[float, float] | None = None
    unanswerable: bool = False
    empty_texts: bool = False
    submission: str | None = None
    submission_name: str | None = None

    def __post_init__(self) -> None:
        """Check the fields; raises InputError that names the field."""
        for key, name in (("name", self.name), *(("files", split) for split in self.splits)):
            if not FILE_NAME.fullmatch(name):
                reason = "cannot be the name of a file; folders of runs and files of predictions have this name"
                raise InputError(f"{key}: {quoted(name)} {reason}")
        if len(set(self.labels or ())) < len(self.labels or ()):
            raise InputError("labels: a label is given twice")
        if self.score_range and not self.score_range[0] < self.score_range[1]:
            raise InputError("score_range: give the least score, then a greater one")
        if TRAIN not in self.splits or not self.splits[TRAIN].labelled:
            raise InputError(f"files: no labelled split {TRAIN!r}")

    @property
    def evaluation_splits(self) -> tuple[str, ...]:
        """The splits with labels on which a model is evaluated."""
        return tuple(name for name, split in self.splits.items() if split.labelled and name != TRAIN)

    @property
    def submission_splits(self) -> tuple[str, ...]:
        """The splits without labels, whose predictions are submitted."""
        return tuple(name for name, split in self.splits.items() if not split.labelled)
