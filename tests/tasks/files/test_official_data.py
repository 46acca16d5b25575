"""Acceptance: every task of the registry reads its official files without losing a row.

It runs if the environment variable TASK_DATA names a folder with the files, laid out as conf/registry expects. The
expected counts are those of the data set that the project was developed with, of which most files are slices.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tasks.registry import TASKS
from tests.support.task_files import load

DATA = Path(os.environ.get("TASK_DATA", ""))
pytestmark = pytest.mark.needs("TASK_DATA")

# Task -> split -> rows. Everything that the registry knows is here but dureader, whose files are not in the data set.
ROWS = {
    "cola": {"train": 8551, "dev": 1043},
    "sst2": {"train": 22000, "dev": 872},
    "mrpc": {"train": 3667, "dev": 408},
    "qqp": {"train": 9309, "dev": 1000},
    "stsb": {"train": 5749, "dev": 1500},
    "mnli": {"train": 7000, "dev_matched": 9815, "dev_mismatched": 3912},
    "qnli": {"train": 7000, "dev": 5463},
    "rte": {"train": 2490, "dev": 277},
    "wnli": {"train": 565, "dev": 70},
    "squad1": {"train": 6464, "dev": 1510},
    "squad2": {"train": 7662, "dev": 2169},
    "race": {"train": 1956 + 2384, "dev": 517 + 582},
    "race_high": {"train": 1956, "dev": 517},
    "race_middle": {"train": 2384, "dev": 582},
    "imdb": {"train": 1000 + 1000, "test": 500 + 500},
    "ag_news": {"train": 8000, "test": 2000},
    "conll2003": {"train": 7090, "dev": 3250},
    "xnli": {"train": 2724, "dev": 2490, "test": 2286},
    "lcqmc": {"train": 6000, "dev": 2780},
    "chnsenticorp": {"train": 5000, "dev": 1200},
    "msra_ner": {"train": 4500, "dev": 2318, "test": 1200},
    "drcd": {"train": 2386, "dev": 1138},
    "cmrc2018": {"train": 1002, "dev": 3219},
    "dureader_robust": {"train": 690, "dev": 817},
    "afqmc": {"train": 6000, "dev": 4316},
    "tnews": {"train": 8000, "dev": 6000},
    "iflytek": {"train": 1200, "dev": 800},
    "cmnli": {"train": 5000, "dev": 2000},
    "ocnli": {"train": 3000, "dev": 1500},
    "csl": {"train": 1600, "dev": 700},
    "cluewsc2020": {"train": 1021, "dev": 224},
    "c3": {"train": 1820 + 1904, "dev": 1825 + 1991},
    "chid": {"train": 1782, "dev": 624},
    "cluener": {"train": 5500, "dev": 671},
}
# Rows without gold label; no other row may be left out.
OMITTED = {("ocnli", "train"): 6, ("ocnli", "dev"): 22}
NOTES = {
    ("cmrc2018", "train"): {"answers at another position than answer_start": 5, "empty questions": 2},
    ("cmrc2018", "dev"): {
        "answers at another position than answer_start": 7,
        "answers that are not in the context": 193,
    },
    ("dureader_robust", "dev"): {"answers at another position than answer_start": 1134, "empty answers": 1},
    ("race", "train"): {"questions with equal options": 5},
    ("race_middle", "train"): {"questions with equal options": 5},
    ("c3", "train"): {"questions with equal options": 2},
    ("c3", "dev"): {"questions with equal options": 1},
    ("cluener", "train"): {"texts with overlapping entities": 1},
}
SPLITS = [(task, split) for task, splits in ROWS.items() for split in splits]


def test_every_task_is_expected() -> None:
    assert {*ROWS, "dureader"} == set(TASKS)


@pytest.mark.parametrize(("task", "split"), SPLITS)
def test_every_row_is_read(task: str, split: str) -> None:
    report = load(TASKS[task], DATA, split).report
    assert report.rows == ROWS[task][split]
    assert len(report.omitted) == OMITTED.get((task, split), 0)
    assert report.bad == ()
    assert report.notes == NOTES.get((task, split), {})


@pytest.mark.parametrize("task", ["tnews", "iflytek"])
def test_the_labels_are_those_of_the_official_list(task: str) -> None:
    text = (DATA / "clue" / task / "labels.json").read_text(encoding="utf-8")
    assert TASKS[task].labels == tuple(json.loads(line)["label"] for line in text.splitlines() if line)
