"""The kinds on the real files of all tasks: no row is lost, every split is encoded, and perfect scores are perfect.

    TASK_DATA=FOLDER pytest -s tests/tasks/kinds/test_on_task_data.py

FOLDER has the official files of the tasks, laid out as conf/registry expects, and the vocabularies vocab/en/vocab.txt
and vocab/zh/vocab.txt. The expected counts are those of the data set that the project was developed with, of which most
files are slices.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reader.tokenization.tokenizer import Tokenizer
from reader.tokenization.vocabulary_file import load_vocabulary
from tasks.files.official import available_splits, with_labels
from tasks.kinds.base import Kind
from tasks.kinds.catalog import kind_of
from tasks.kinds.features import Features
from tasks.kinds.settings import KindSettings, SpanSettings
from tasks.metrics.catalog import METRICS
from tasks.registry import TASKS
from tests.support.task_files import load
from tests.tasks.kinds.tiny import gold_scores

FOLDER = Path(os.environ.get("TASK_DATA", ""))
pytestmark = pytest.mark.needs("TASK_DATA")

SETTINGS = KindSettings(span=SpanSettings(max_answer_length=50))
# In percent: some gold answers are not in the context, parts of words, or longer than max_answer_length.
IMPERFECT = {"squad1": 98.94, "cmrc2018": 98.82, "dureader_robust": 99.52}

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


def folder_of(name: str) -> Path:
    """Return the folder in which the files of a task are found; skip the test without them."""
    for folder in (FOLDER, FOLDER / "clue"):
        if len(available_splits(TASKS[name], folder)) >= 2:
            return folder
    assert name not in ROWS
    pytest.skip(f"no files of {name}")


def perfect_scores(kind: Kind[Any, Any], features: Any, examples: list[Any]) -> np.ndarray:
    """Return the scores of a network that is always right."""
    if kind.name == "span":
        return gold_scores(features, examples)
    if kind.name == "regression":
        return features.gold["gold_scores"][:, np.newaxis]
    if kind.name == "multiple_choice":
        scores = np.zeros((features.num_units, 1), np.float32)
        scores[features.unit_offsets[:-1] + features.gold["labels"]] = 10
        return scores
    return np.eye(kind.width, dtype=np.float32)[
        features.unit_gold["tags"] if kind.name == "tagging" else features.gold["labels"]
    ]


def check_batches(features: Features) -> None:
    """Every token of every input is in exactly one batch, and every unit in exactly one."""
    order = np.argsort(features.lengths, kind="stable")
    units, tokens = [], 0
    for samples in np.array_split(order, max(1, len(order) // 64)):
        batch = features.batch(samples)
        tokens += int(batch["lengths"].sum())
        assert (batch["lengths"] <= SETTINGS.input.max_seq_len).all()
        units.append(features.unit_rows(samples))
    assert tokens == len(features.inputs.tokens)
    assert np.array_equal(np.sort(np.concatenate(units)), np.arange(features.num_units))


@pytest.mark.parametrize("name", TASKS)
def test_every_split_of_a_task_is_encoded_and_perfect_scores_are_perfect(name: str) -> None:
    folder = folder_of(name)
    task = with_labels(TASKS[name], folder)
    tokenizer = Tokenizer(load_vocabulary(FOLDER / "vocab" / task.language / "vocab.txt", True))
    kind = kind_of(task, SETTINGS)
    assert ROWS.get(name, {}).keys() <= {*available_splits(task, folder)}
    for split in available_splits(task, folder):
        loaded = load(task, folder, split)
        examples, report = loaded.examples, loaded.report
        if name in ROWS and split in ROWS[name]:
            assert report.rows == ROWS[name][split]
            assert len(report.omitted) == OMITTED.get((name, split), 0)
            assert report.bad == ()
        features = kind.encode(examples, tokenizer, training=split == "train")
        if split != "train":
            assert set(features.example_of.tolist()) == set(range(len(examples)))
        check_batches(features)
        if split in task.evaluation_splits:
            predictions = kind.decode(perfect_scores(kind, features, examples), features, examples)
            scores = kind.evaluate(predictions)
            assert len(predictions.answers) == len(predictions.details) == len(examples)
            metric = METRICS[task.metric]
            best = 100.0 if metric.unit == "percent" else 1.0
            assert scores[metric.main] >= IMPERFECT.get(name, 0.999 * best)


def test_every_task_is_expected() -> None:
    assert {*ROWS, "dureader"} == set(TASKS)


@pytest.mark.parametrize("task", ["tnews", "iflytek"])
def test_the_labels_are_those_of_the_official_list(task: str) -> None:
    text = (FOLDER / "clue" / task / "labels.json").read_text(encoding="utf-8")
    assert TASKS[task].labels == tuple(json.loads(line)["label"] for line in text.splitlines() if line)
