"""The examples that are chosen, and the splits that are evaluated."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from reader.errors import InputError
from tasks.kinds.base import Example
from tasks.kinds.sentences import Classification, SentenceExample
from tasks.registry import find_task
from tasks.training.data import evaluated_splits, spread_evenly
from tests.support.tiny_task import finetune
from tests.tasks.kinds.tiny import PLACE

# The names of the labels are asked of the kind, and none of its settings.
CLASSES: Any = Classification


def labelled(*labels: str) -> list[Example]:
    return [SentenceExample(str(i), "a", None, label, PLACE) for i, label in enumerate(labels)]


def test_training_examples_are_limited_evenly_and_in_order(tiny_task: Path, tmp_path: Path) -> None:
    examples = labelled(*"0123456789")
    assert spread_evenly(CLASSES, examples, 4) == [examples[i] for i in (0, 2, 5, 7)]
    assert spread_evenly(CLASSES, examples, 11) == spread_evenly(CLASSES, examples, None) == examples
    done = finetune(tiny_task, tmp_path / "run", "--max_train_examples=10", "--check").ok()
    assert "61 rows: 10 of 61 examples; 10 samples" in done.stdout
    assert "23 rows: 23 examples" in done.stdout


@pytest.mark.parametrize("labels", ["01", "012", "0122"])
def test_limited_examples_of_labels_in_turn_have_all_labels(labels: str) -> None:
    examples = labelled(*labels * 400)
    for limit in (200, 100 * len(labels)):
        chosen = spread_evenly(CLASSES, examples, limit)
        counts = Counter(example.gold for example in chosen)
        expected = {label: limit * labels.count(label) / len(labels) for label in set(labels)}
        assert all(abs(counts[label] - expected[label]) < 0.1 * limit for label in expected)
        assert chosen == sorted(chosen, key=examples.index) == spread_evenly(CLASSES, examples, limit)


def test_a_labelled_test_split_is_evaluated_at_the_end_or_in_place_of_a_dev_split(tmp_path: Path) -> None:
    task = tmp_path / "task.yaml"
    splits = {"train": "a.tsv", "test": "b.tsv", "dev": "c.tsv"}
    head = "kind: classification\nlanguage: en\nlayout: tsv\ncolumns: {text_a: text, label: label}\nmetric: accuracy\n"
    for name in splits.values():
        (tmp_path / name).write_text("text\tlabel\na\tx\nb\ty\n")
    task.write_text(f"{head}files: {json.dumps(splits)}\n")
    assert evaluated_splits(find_task(str(task)), tmp_path) == (["dev"], ["test"])
    del splits["dev"]
    task.write_text(f"{head}files: {json.dumps(splits)}\n")
    assert evaluated_splits(find_task(str(task)), tmp_path) == (["test"], [])
    # Of files of one's own, only those without labels may be missing.
    (tmp_path / "b.tsv").unlink()
    with pytest.raises(InputError, match=r"no files of the split 'test' .*looked for b\.tsv"):
        evaluated_splits(find_task(str(task)), tmp_path)
    task.write_text(f"{head}files: {json.dumps(splits)}\nunlabelled: [test]\n")
    assert evaluated_splits(find_task(str(task)), tmp_path) == ([], [])
