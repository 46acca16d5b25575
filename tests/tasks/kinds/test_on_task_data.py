"""The kinds on the real files of all tasks: every split is encoded, and perfect scores give gold answers.

    TASK_DATA=FOLDER pytest -s tests/tasks/kinds/test_on_task_data.py

FOLDER has the official files of the tasks, and the vocabularies vocab/en/vocab.txt and vocab/zh/vocab.txt.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reader.tokenization.tokenizer import Tokenizer
from reader.tokenization.vocabulary_file import load_vocabulary
from tasks.files.official import available_splits, load_split, with_labels
from tasks.kinds.base import Kind
from tasks.kinds.catalog import kind_of
from tasks.kinds.features import Features
from tasks.kinds.settings import KindSettings, SpanSettings
from tasks.metrics.catalog import METRICS
from tasks.registry import TASKS
from tests.tasks.kinds.tiny import gold_scores

FOLDER = Path(os.environ.get("TASK_DATA", ""))
pytestmark = pytest.mark.needs("TASK_DATA")

SETTINGS = KindSettings(span=SpanSettings(max_answer_length=50))
# In percent: some gold answers are not in the context, parts of words, or longer than max_answer_length.
IMPERFECT = {"squad1": 98.94, "cmrc2018": 98.82, "dureader_robust": 99.52}


def folder_of(name: str) -> Path:
    """Return the folder in which the files of a task are found; skip the test without them."""
    for folder in (FOLDER, FOLDER / "clue"):
        if len(available_splits(TASKS[name], folder)) >= 2:
            return folder
    pytest.skip(f"no files of {name}")


def tokenizer_of(language: str) -> Tokenizer:
    return Tokenizer(load_vocabulary(FOLDER / "vocab" / language / "vocab.txt", True))


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
    return np.eye(kind.width, dtype=np.float32)[features.tags if kind.name == "tagging" else features.gold["labels"]]


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
    kind, tokenizer = kind_of(task, SETTINGS), tokenizer_of(task.language)
    for split in available_splits(task, folder):
        examples = load_split(task, folder, split).examples
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
