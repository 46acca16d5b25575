"""The English tasks of the paper: those of GLUE (gluebenchmark.com), whose test files have no labels, and others."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from tasks.kinds.task import Task, files
from tasks.layouts.benchmarks import Squad
from tasks.layouts.folders import Race, TextFolders
from tasks.layouts.tables import Conll, Csv, Tsv

SENTENCES = {"text_a": "sentence1", "text_b": "sentence2"}
TRAIN_AND_DEV = {"train": files("train.tsv"), "dev": files("dev.tsv")}
TEST = files("test.tsv", labelled=False)
# QQP's official files have a few lines with fewer than 6 columns, which BERT's and upstream's readers leave out, and a
# few empty questions, which they read.
QQP_COLUMNS = {"text_a": "question1", "text_b": "question2", "label": "is_duplicate"}
NLI_LABELS = ("contradiction", "entailment", "neutral")


def glue_task(name: str, title: str, columns: Mapping[str, str], labels: tuple[str, ...] | None, **fields: Any) -> Task:
    """Return a task of GLUE with train.tsv, dev.tsv and test.tsv; `fields` override those of a classification."""
    defaults = {
        "language": "en",
        "kind": "classification",
        "metric": "accuracy",
        "layout": Tsv({**columns, "label": columns.get("label", "label")}),
        "splits": TRAIN_AND_DEV | {"test": TEST},
        "folders": (title, f"glue/{title}"),
        "submission": "glue",
    }
    return Task(name=name, title=title, labels=labels, **{**defaults, **fields})


GLUE = (
    glue_task(
        "mnli",
        "MNLI",
        SENTENCES,
        NLI_LABELS,
        # The train file has 12 columns and the dev files have 16, of which label1 to label5 are not the gold label.
        layout=Tsv({**SENTENCES, "label": "gold_label"}),
        omitted_labels=("-",),
        splits={
            "train": files("train.tsv"),
            "dev_matched": files("dev_matched.tsv"),
            "dev_mismatched": files("dev_mismatched.tsv"),
            "test_matched": files("test_matched.tsv", labelled=False),
            "test_mismatched": files("test_mismatched.tsv", labelled=False),
            # GLUE's diagnostic set, which a submission holds as well; it has a folder of its own.
            "diagnostic": files(
                *("diagnostic.tsv", "diagnostic/diagnostic.tsv", "AX/diagnostic.tsv", "AX/AX.tsv"), labelled=False
            ),
        },
    ),
    glue_task("qnli", "QNLI", {"text_a": "question", "text_b": "sentence"}, ("entailment", "not_entailment")),
    glue_task(
        "qqp",
        "QQP",
        QQP_COLUMNS,
        ("0", "1"),
        metric="accuracy_f1",
        layout=Tsv(QQP_COLUMNS, omit_short_rows=True),
        empty_texts=True,
    ),
    glue_task("sst2", "SST-2", {"text_a": "sentence"}, ("0", "1")),
    glue_task(
        "cola",
        "CoLA",
        {"text_a": "sentence"},
        ("0", "1"),
        metric="matthews",
        # Train and dev have no header, and their first line is an example; the test file has one.
        layout=Tsv(
            {"text_a": "sentence", "label": "label"}, header="no", names=("source", "label", "mark", "sentence")
        ),
        splits=TRAIN_AND_DEV
        | {"test": files("test.tsv", labelled=False, layout=Tsv({"text_a": "sentence", "id": "index"}))},
    ),
    glue_task(
        "mrpc",
        "MRPC",
        {"text_a": "#1 String", "text_b": "#2 String", "label": "Quality"},
        ("0", "1"),
        metric="accuracy_f1",
        # The names of the files of Microsoft's own download.
        splits={
            "train": files("train.tsv", "msr_paraphrase_train.txt"),
            "dev": files("dev.tsv"),
            "test": files("test.tsv", "msr_paraphrase_test.txt", labelled=False),
        },
    ),
    glue_task("rte", "RTE", SENTENCES, ("entailment", "not_entailment")),
    glue_task(
        "stsb",
        "STS-B",
        SENTENCES,
        None,
        kind="regression",
        metric="correlation",
        layout=Tsv({**SENTENCES, "score": "score"}),
        score_range=(0.0, 5.0),
    ),
    glue_task("wnli", "WNLI", SENTENCES, ("0", "1")),
)


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
