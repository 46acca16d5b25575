"""Multi-label classification: the forms of its rows, and its predictions.

The numbers of its loss are in test_network.py, those of its metric in metrics/test_labels_and_scores.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reader.errors import InputError
from tasks.files.official import with_labels
from tasks.kinds.catalog import kind_of
from tasks.kinds.sentences import SentenceExample
from tasks.kinds.settings import KindSettings
from tasks.kinds.task import Task
from tasks.registry.task_file import read_task_file
from tests.support.own_tasks import MOODS
from tests.support.task_files import load, write
from tests.tasks.kinds.tiny import PLACE, tokenizer

HEAD = "kind: multi_label\nlanguage: en\nmetric: multi_label_f1\nfiles: {train: train, dev: dev}\n"
SEPARATED = "layout: tsv\ncolumns: {text_a: text, labels: moods}\nlist_separator: ','\n"
FLAGS = "columns: {text_a: text, labels: [glad, sad, calm]}\n"
# The labels of the four rows of every form: two, one, none, two.
EXPECTED = [("calm", "glad"), ("sad",), (), ("glad", "sad")]


def task_of(folder: Path, text: str) -> Task:
    return read_task_file(write(folder / "task.yaml", HEAD + text))


def gold_of(task: Task, folder: Path) -> list[Any]:
    return [example.gold for example in load(task, folder).examples if isinstance(example, SentenceExample)]


FORMS = {
    "a separator": (SEPARATED, "text\tmoods\nx\tglad,calm\nx\tsad\nx\t\nx\tsad, glad\n"),
    "no header": (
        "layout: tsv\nheader: no\ncolumns: {text_a: 1, labels: 2, id: 3}\nlist_separator: '|'\n",
        "x\tglad|calm\t7\nx\tsad\t8\nx\t\t9\nx\tsad|glad\t10\n",
    ),
    "columns of a table": (
        "layout: csv\n" + FLAGS,
        "text,glad,sad,calm\nx,1,0,1\nx,0,1,0\nx,false,False,0\nx,1,1,0\n",
    ),
    "lists": (
        "layout: json_lines\ncolumns: {text_a: text, labels: moods}\n",
        '{"text": "x", "moods": ["glad", "calm"]}\n{"text": "x", "moods": ["sad"]}\n'
        '{"text": "x", "moods": []}\n{"text": "x", "moods": ["sad", "glad"]}\n',
    ),
    "an object": (
        "layout: json_lines\ncolumns: {text_a: text, labels: moods}\n",
        '{"text": "x", "moods": {"glad": 1, "sad": 0, "calm": true}}\n{"text": "x", "moods": {"sad": 1}}\n'
        '{"text": "x", "moods": {"sad": false}}\n{"text": "x", "moods": {"sad": 1, "glad": "1"}}\n',
    ),
    "keys": (
        "layout: json_lines\n" + FLAGS,
        '{"text": "x", "glad": 1, "sad": 0, "calm": 1}\n{"text": "x", "glad": 0, "sad": 1, "calm": 0}\n'
        '{"text": "x", "glad": 0, "sad": 0, "calm": 0}\n{"text": "x", "glad": 1, "sad": 1, "calm": 0}\n',
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_file_gives_the_same_labels(form: str, tmp_path: Path) -> None:
    text, rows = FORMS[form]
    write(tmp_path / "train", rows)
    task = task_of(tmp_path, text)
    assert gold_of(task, tmp_path) == EXPECTED
    assert with_labels(task, tmp_path).labels == ("calm", "glad", "sad")


def test_one_column_or_key_is_enough_and_a_label_that_is_given_twice_counts_once(tmp_path: Path) -> None:
    for layout, rows in (("csv", "text,spam\nx,1\nx,0\n"), ("json_lines", '{"text":"x","spam":1}\n' * 2)):
        write(tmp_path / "train", rows)
        task = task_of(tmp_path, f"layout: {layout}\ncolumns: {{text_a: text, labels: [spam]}}\n")
        assert gold_of(task, tmp_path)[0] == ("spam",)
    write(tmp_path / "train", "text\tmoods\nx\tsad,sad\nx\tglad\n")
    task = task_of(tmp_path, SEPARATED)
    assert gold_of(task, tmp_path) == [("sad",), ("glad",)]


@pytest.mark.parametrize(
    ("text", "rows", "message"),
    [
        (SEPARATED + "labels: [sad]\n", "text\tmoods\nx\tsad,glad\n", "train:2: the label 'glad' is none of the task"),
        # It would be a label of its own.
        (SEPARATED.replace("list_separator: ','\n", ""), "text\tmoods\nx\tsad,glad\n", "train:2: labels is not a list"),
        ("layout: csv\n" + FLAGS, "text,glad,sad,calm\nx,1,0,2\n", "train:2: calm is '2', neither true nor false"),
        (FORMS["lists"][0], '{"text": "x", "moods": null}\n', "train:1: labels is missing"),
        (FORMS["lists"][0], '{"text": "x", "moods": [null]}\n', "train:1: the label is missing"),
        (FORMS["lists"][0], '{"text": "x", "moods": []}\n', "labels: there are none"),
    ],
)
def test_wrong_labels_are_errors_that_name_the_row(text: str, rows: str, message: str, tmp_path: Path) -> None:
    write(tmp_path / "train", rows)
    task = task_of(tmp_path, text)
    with pytest.raises(InputError) as error:
        with_labels(task, tmp_path) if task.labels is None else load(task, tmp_path)
    assert message in str(error.value)


def test_a_label_is_predicted_if_its_probability_is_above_one_half() -> None:
    kind = kind_of(MOODS, KindSettings())
    gold = {"a": ("glad",), "b": (), "c": ("glad",)}
    examples = [SentenceExample(text, text, None, labels, PLACE) for text, labels in gold.items()]
    features = kind.encode(examples, tokenizer(), training=False)
    scores = np.array([[3.0, -0.5, 0.0], [-1.0, -2.0, -9.0], [0.7, 0.0, -1.0]], np.float32)
    predictions = kind.decode(scores, features, examples)
    probabilities = 1 / (1 + np.exp(-scores))
    for row, record in zip(probabilities, kind.records(predictions), strict=True):
        assert [*record["probabilities"].values()] == pytest.approx(row.tolist())
        assert record["labels"] == [
            label for label, value in zip(("glad", "sad", "calm"), row, strict=True) if value > 0.5
        ]
    # The mean is over all labels of the task, also those that no example has.
    assert kind.evaluate(predictions)["macro_f1"] == pytest.approx(1 / 3)
