"""The English tasks of the paper that are not in GLUE."""

from __future__ import annotations

from functools import partial

from tasks.kinds.task import Task, files
from tasks.layouts.folders import Race, TextFolders
from tasks.layouts.questions import Squad
from tasks.layouts.tables import Conll, Csv


def squad_task(version: str, metric: str, unanswerable: bool) -> Task:
    """Return SQuAD 1.1 or 2.0. The official test set is not published: submissions are made from the dev set."""
    return Task(
        name=f"squad{version[0]}",
        title=f"SQuAD {version}",
        language="en",
        kind="span",
        metric=metric,
        layout=Squad(),
        splits={name: files(f"{name}-v{version}.json") for name in ("train", "dev")},
        folders=("squad",),
        unanswerable=unanswerable,
        submission="squad",
    )


def race_task(name: str, title: str, levels: tuple[str, ...]) -> Task:
    """Return RACE with the questions of high schools, middle schools, or both."""
    return Task(
        name=name,
        title=title,
        language="en",
        kind="multiple_choice",
        metric="race",
        layout=Race(),
        splits={split: files(tuple(f"{split}/{level}" for level in levels)) for split in ("train", "dev", "test")},
        folders=("RACE", "race"),
    )


classification = partial(Task, language="en", kind="classification", metric="accuracy")

ENGLISH = (
    squad_task("1.1", "squad_v1", unanswerable=False),
    squad_task("2.0", "squad_v2", unanswerable=True),
    race_task("race", "RACE", ("high", "middle")),
    race_task("race_high", "RACE-h", ("high",)),
    race_task("race_middle", "RACE-m", ("middle",)),
    classification(
        name="imdb",
        title="IMDb",
        layout=TextFolders(classes=("neg", "pos"), clean="br_to_space"),
        splits={"train": files("train"), "test": files("test")},
        folders=("aclImdb", "imdb/aclImdb"),
        labels=("neg", "pos"),
    ),
    classification(
        name="ag_news",
        title="AG News",
        # Class, title, description. Titles may be empty.
        layout=Csv({"label": 1, "text_a": (2, 3)}, header="no", clean="repair_entities"),
        splits={"train": files("train.csv"), "test": files("test.csv")},
        folders=("ag_news", "ag_news_csv"),
        labels=("1", "2", "3", "4"),
    ),
    Task(
        name="conll2003",
        title="CoNLL-2003",
        language="en",
        kind="tagging",
        metric="conlleval",
        layout=Conll(),
        splits={
            "train": files("eng.train", "train.txt"),
            "dev": files("eng.testa", "valid.txt", "dev.txt"),
            "test": files("eng.testb", "test.txt"),
        },
        folders=("conll2003",),
        labels=("PER", "ORG", "LOC", "MISC"),
    ),
)
