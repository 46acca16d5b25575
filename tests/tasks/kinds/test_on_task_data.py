"""The kinds on the real files of all tasks: every split is encoded, and gold answers come back.

    TASK_DATA=FOLDER pytest -s tests/tasks/kinds/test_on_task_data.py

FOLDER has the official files of the tasks, and the vocabularies vocab/en/vocab.txt and vocab/zh/vocab.txt.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ernie_gram.config.loading import load_config
from reader.tokenization.tokenizer import Tokenizer
from reader.tokenization.vocabulary_file import load_vocabulary
from tasks.files.official import available_splits, load_split, with_labels
from tasks.kinds.base import Kind
from tasks.kinds.catalog import kind_of
from tasks.kinds.features import Features
from tasks.kinds.settings import KindSettings, SpanSettings
from tasks.kinds.span import Span
from tasks.metrics.catalog import METRICS
from tasks.registry import TASKS
from tasks.training.config import FinetuneConfig
from tests.support.commands import ROOT
from tests.tasks.kinds.round_trip import gold_scores, round_trip_exceptions

FOLDER = Path(os.environ.get("TASK_DATA", ""))
pytestmark = pytest.mark.needs("TASK_DATA")

CONF = ROOT / "conf" / "tasks"
SETTINGS = KindSettings(span=SpanSettings(max_answer_length=50))
ROUND_TRIPS = [name for name, task in TASKS.items() if task.kind == "span"]


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
        return features.targets[:, np.newaxis]
    if kind.name == "multiple_choice":
        scores = np.zeros((features.num_units, 1), np.float32)
        scores[features.unit_offsets[:-1] + features.answers] = 10
        return scores
    return np.eye(kind.width, dtype=np.float32)[features.tags if kind.name == "tagging" else features.targets]


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
            # Some answers are parts of words, or longer than max_answer_length.
            assert scores[metric.main] >= best * (0.98 if task.kind == "span" else 0.999)


@pytest.mark.parametrize("name", ROUND_TRIPS)
def test_gold_answers_come_back(name: str) -> None:
    folder = folder_of(name)
    task = TASKS[name]
    # The settings of a task limit the length of its answers.
    config, _ = load_config(FinetuneConfig, ["--config", str(CONF / f"{name}.yaml")])
    kind = kind_of(task, config.kind_settings)
    assert isinstance(kind, Span)
    for split in available_splits(task, folder):
        examples = load_split(task, folder, split).examples
        unequal = round_trip_exceptions(kind, examples, tokenizer_of(task.language))
        reasons = Counter(each.reason for each in unequal)
        assert reasons["other"] == reasons["no token"] == 0, unequal
