"""Multi-label classification: the forms of its rows, its threshold, and a task that is learned and used.

The numbers of its loss are in test_network.py, those of its metric in metrics/test_labels_and_scores.py.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reader.errors import InputError
from tasks.api import FineTuned
from tasks.kinds.catalog import kind_of
from tasks.kinds.sentences import SentenceExample
from tasks.kinds.settings import InputSettings, KindSettings, MultiLabelSettings
from tasks.kinds.task import Task
from tasks.reading.load import with_labels
from tasks.registry.task_file import read_task_file
from tasks.training.checks import equal_gold_values, equal_predictions
from tests.support.commands import Done, call
from tests.support.own_tasks import MOODS
from tests.support.static_programs import fresh_scope
from tests.support.task_files import load, write, write_json, write_lines
from tests.support.tiny_task import LETTERS, finetune
from tests.tasks.kinds.tiny import PLACE, tokenizer
from tests.tasks.test_predict import predict, records

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
    "aliases": (
        SEPARATED + "labels: [calm, glad, sad]\nlabel_aliases: {'0': calm, '1': glad, '2': sad}\n",
        "text\tmoods\nx\t1,0\nx\t2\nx\t\nx\t2,1\n",
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
    assert not load(task, tmp_path).report.notes


def test_one_column_or_key_is_enough_for_a_single_label(tmp_path: Path) -> None:
    for layout, rows in (("csv", "text,spam\nx,1\nx,0\n"), ("json_lines", '{"text":"x","spam":1}\n' * 2)):
        write(tmp_path / "train", rows)
        task = task_of(tmp_path, f"layout: {layout}\ncolumns: {{text_a: text, labels: [spam]}}\n")
        assert gold_of(task, tmp_path)[0] == ("spam",)


def test_a_label_that_is_given_twice_counts_once_and_is_noted(tmp_path: Path) -> None:
    write(tmp_path / "train", "text\tmoods\nx\tsad,sad\nx\tglad\n")
    loaded = load(task_of(tmp_path, SEPARATED), tmp_path)
    assert [example.gold for example in loaded.examples if isinstance(example, SentenceExample)] == [
        ("sad",),
        ("glad",),
    ]
    assert loaded.report.notes == {"rows with a label that is given twice": 1}


@pytest.mark.parametrize(
    ("text", "rows", "message"),
    [
        (SEPARATED + "labels: [sad]\n", "text\tmoods\nx\tsad,glad\n", "train:2: the label 'glad' is none of the task"),
        # It would be a label of its own.
        (SEPARATED.replace("list_separator: ','\n", ""), "text\tmoods\nx\tsad,glad\n", "train:2: labels is not a list"),
        ("layout: csv\n" + FLAGS, "text,glad,sad,calm\nx,1,0,2\n", "train:2: calm is '2', neither true nor false"),
        ("layout: csv\n" + FLAGS, "text,glad,sad,calm\nx,1,0,\n", "train:2: calm is '', neither true nor false"),
        (FORMS["lists"][0], '{"text": "x", "moods": "sad"}\n', "train:1: labels is not a list but 'sad'"),
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


def test_an_empty_list_of_labels_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"task.yaml: labels: there are none"):
        task_of(tmp_path, SEPARATED + "labels: []\n")


@pytest.mark.parametrize("threshold", [0.0, 0.3, 0.5, 0.9])
def test_a_label_is_predicted_if_its_probability_is_above_the_threshold(threshold: float) -> None:
    kind = kind_of(MOODS, KindSettings(multi_label=MultiLabelSettings(threshold)))
    examples = [SentenceExample(str(i), "a", None, None, PLACE) for i in range(2)]
    features = kind.encode(examples, tokenizer(), training=False)
    scores = np.array([[3.0, -0.5, 0.0], [-1.0, -2.0, -9.0]], np.float32)
    predictions = kind.decode(scores, features, examples)
    probabilities = 1 / (1 + np.exp(-scores))
    for row, record in zip(probabilities, kind.records(predictions), strict=True):
        assert [*record["probabilities"].values()] == pytest.approx(row.tolist())
        assert record["labels"] == [
            label for label, value in zip(("glad", "sad", "calm"), row, strict=True) if value > threshold
        ]


def test_the_probabilities_of_a_long_text_are_means_over_its_inputs() -> None:
    kind = kind_of(MOODS, KindSettings(InputSettings(max_seq_len=8, max_query_len=4)))
    examples = [SentenceExample("0", "a b c d e f g h", None, None, PLACE)]
    features = kind.encode(examples, tokenizer(), training=False)
    scores = np.array([[4.0, 0.0, 1.0], [-1.0, 0.0, 1.0], [-1.0, 0.0, 1.0]], np.float32)
    [record] = kind.records(kind.decode(scores, features, examples))
    means = (1 / (1 + np.exp(-scores))).mean(0)
    assert [*record["probabilities"].values()] == pytest.approx(means.tolist())
    assert record["labels"] == ["glad", "calm"]


@pytest.mark.parametrize("threshold", [-0.1, 1.0, float("nan")])
def test_a_threshold_that_nothing_or_all_exceeds_is_refused(threshold: float) -> None:
    with pytest.raises(InputError, match=r"^multi_label.threshold: "):
        MultiLabelSettings(threshold)


@pytest.mark.parametrize(
    ("gold", "answers", "lines"),
    [
        ([("glad", "sad")] * 2, [("sad",)] * 2, 1),
        ([("glad", "sad"), ("sad",)], [("sad", "calm")] * 2, 1),
        ([(), ("sad",)], [()] * 2, 1),
        ([(), ("sad",)], [("sad",), ("sad", "calm")], 0),
    ],
)
def test_label_sets_that_are_all_equal_are_named(gold: Sequence[Any], answers: Sequence[Any], lines: int) -> None:
    kind = kind_of(MOODS, KindSettings())
    examples = [SentenceExample(str(i), "a", None, labels, PLACE) for i, labels in enumerate(gold)]
    split: Any = type("Split", (), {"name": "dev", "examples": examples})
    found = equal_gold_values(kind, split, ())
    warning = equal_predictions(kind, split, kind.predictions(examples, answers, [{}] * 2))
    assert len(found) + (warning is not None) == lines


# The labels of a text are those of these letters that it has; some texts have none.
LABELS = "abc"


def labels_in(text: str) -> list[str]:
    return [label for label in LABELS if label in text]


@pytest.fixture(scope="module")
def folder(tiny_task: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with data/task.yaml and its files, and with the model of the tiny task."""
    folder = tmp_path_factory.mktemp("multi_label")
    (folder / "model").symlink_to(tiny_task / "model")
    random = np.random.default_rng(1)
    for name, count in (("train", 160), ("dev", 30), ("test", 6)):
        texts = [" ".join(random.choice(list(LETTERS), 3)) for _ in range(count)]
        rows = (f"{text}\t{';'.join(labels_in(text)) if name != 'test' else ''}\n" for text in texts)
        write(folder / "data" / f"{name}.tsv", "text\tletters\n" + "".join(rows))
    task = {
        "kind": "multi_label",
        "language": "en",
        "layout": "tsv",
        "columns": {"text_a": "text", "labels": "letters"},
        "list_separator": ";",
        "files": {name: f"{name}.tsv" for name in ("train", "dev", "test")},
        "unlabelled": ["test"],
        "metric": "multi_label_f1",
    }
    write_json(folder / "data" / "task.yaml", task)
    return folder


@pytest.fixture(scope="module")
def run(folder: Path) -> Path:
    """The folder of a finished fine-tuning."""
    done = train(folder, folder / "run")
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr
    return folder / "run"


def train(folder: Path, output: Path, *more: str) -> Done:
    return finetune(folder, output, "--optimizer.epochs=8", "--evaluation.metric=macro_f1", *more)


def test_it_is_learned_and_its_predictions_are_scored_as_in_the_run(folder: Path, run: Path) -> None:
    from tasks.score import main

    result = json.loads((run / "result.json").read_text())
    scores = result["scores"]["dev"]
    assert min(scores["micro_f1"], scores["macro_f1"], scores["a_f1"], scores["b_f1"], scores["c_f1"]) > 0.9
    assert result["score"] == scores["macro_f1"]
    lines = [json.loads(line) for line in (run / "predictions_dev.jsonl").read_text().splitlines()]
    gold = [line.split("\t")[1] for line in (folder / "data" / "dev.tsv").read_text().splitlines()[1:]]
    right = [";".join(line["labels"]) == labels for line, labels in zip(lines, gold, strict=True)]
    assert scores["accuracy"] == pytest.approx(np.mean(right))
    assert "" in gold
    arguments = [str(folder / "data" / "task.yaml"), str(run / "predictions_dev.jsonl"), "--data", str(folder / "data")]
    assert json.loads(call(main, *arguments).stdout) == scores
    assert json.loads((run / "task.json").read_text())["labels"] == [*LABELS]


def test_it_predicts_a_submission_and_own_texts_on_every_way(folder: Path, run: Path, tmp_path: Path) -> None:
    from tasks.export import main as export

    done = predict(run, "--data", folder / "data", "--split", "test", "--output", tmp_path)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in (tmp_path / "task_test.jsonl").read_text().splitlines()]
    assert [line["id"] for line in lines] == [0, 1, 2, 3, 4, 5]
    texts = ["a d e", "b c", "g h"]
    expected = [["a"], ["b", "c"], []]
    own = write_lines(tmp_path / "own.jsonl", *({"text_a": text} for text in texts))
    with fresh_scope():
        assert call(export, str(run), str(tmp_path / "program"), "--to", "inference").returncode == 0
    for model in (run, tmp_path / "program"):
        found = records(model, "--input", own, "--layout", "json", output=tmp_path / "answers.jsonl")
        assert [record["labels"] for record in found] == expected
        assert all({*record["probabilities"]} == {*LABELS} for record in found)
        answers = FineTuned.load(model).predict(texts)
        assert [answer["labels"] for answer in answers] == expected


def test_the_threshold_is_kept_with_the_model_and_belongs_to_the_run(folder: Path, run: Path) -> None:
    differs = train(folder, run, "--multi_label.threshold=0.7", "--check")
    assert "multi_label.threshold: 0.5 in the checkpoint, 0.7 in this run" in differs.stderr
    content = json.loads((run / "task.json").read_text())
    assert content["settings"]["multi_label"] == {"threshold": 0.5}
    # A run of an earlier version has no such section.
    content["settings"].pop("multi_label")
    write_json(folder / "earlier" / "task.json", content)
    (folder / "earlier" / "task.yaml").symlink_to(run / "task.yaml")
    (folder / "earlier" / "vocab.txt").symlink_to(run / "vocab.txt")
    (folder / "earlier" / "best").symlink_to(run / "best")
    assert FineTuned.load(folder / "earlier").predict(["a d e"])[0]["labels"] == ["a"]
    content["settings"]["multi_label"] = {"threshold": 0.0}
    write_json(folder / "earlier" / "task.json", content)
    assert FineTuned.load(folder / "earlier").predict(["a d e"])[0]["labels"] == [*LABELS]
