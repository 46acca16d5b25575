"""A task of one's own from a YAML file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from reader.errors import InputError
from tasks.kinds.catalog import checked
from tasks.kinds.task import Source, Split, Task
from tasks.layouts.tables import Conll, Tsv
from tasks.registry import TASKS, find_task
from tasks.registry.task_file import read_task_file
from tests.support.task_files import write

REVIEWS = """
kind: classification
language: en
layout: tsv
columns: {text_a: review, label: stars}
files: {train: train.tsv, dev: [a.tsv, b.tsv], test: test.tsv}
unlabelled: [test]
metric: accuracy
"""


def task_of(folder: Path, text: str) -> Task:
    return read_task_file(write(folder / "reviews.yaml", text))


def edited(old: str, new: str) -> str:
    assert old in REVIEWS
    return REVIEWS.replace(old, new)


def test_a_short_file_makes_a_row_like_those_of_the_registry_and_every_setting_reaches_it(tmp_path: Path) -> None:
    assert task_of(tmp_path, REVIEWS) == Task(
        name="reviews",
        title="reviews",
        language="en",
        kind="classification",
        metric="accuracy",
        layout=Tsv({"text_a": "review", "label": "stars"}),
        splits={
            "train": Split((Source(("train.tsv",)),)),
            "dev": Split((Source(("a.tsv", "b.tsv")),)),
            "test": Split((Source(("test.tsv",)),), labelled=False),
        },
    )
    needed = {name: split.needed for name, split in task_of(tmp_path, REVIEWS).splits.items()}
    assert needed == {"train": True, "dev": True, "test": False}
    assert task_of(tmp_path, REVIEWS + "labels: [2, '10', 3]\n").labels == ("2", "10", "3")
    tagging = "kind: tagging\nlanguage: zh\nlayout: conll\nfiles: {train: t, dev: d}\nmetric: conlleval\n"
    text = tagging + "name: mine\ntitle: My task\nlabels: [PER]\n"
    task = task_of(tmp_path, text)
    assert (task.name, task.title, task.layout, task.labels) == ("mine", "My task", Conll(), ("PER",))
    task = task_of(tmp_path, REVIEWS + "label_aliases: {bad: '1'}\nomitted_labels: ['-']\nempty_texts: true\n")
    assert (task.label_aliases, task.omitted_labels, task.empty_texts) == ({"bad": "1"}, ("-",), True)
    assert task_of(tmp_path, REVIEWS + "label_aliases: [bad, good]\n").label_aliases == {"0": "bad", "1": "good"}
    text = edited("columns: {text_a: review, label: stars}", "columns: {text_a: [1, 2], label: 3}\nheader: no")
    more = "names: [a, b, c]\nlist_separator: '|'\nwhere: {c: 1, 3: zh}\nclean: br_to_space\nomit_short_rows: yes\n"
    columns = {"text_a": (1, 2), "label": 3}
    expected = Tsv(columns, "no", ("a", "b", "c"), "|", {"c": "1", 3: "zh"}, True, "br_to_space")
    assert task_of(tmp_path, text + more).layout == expected
    assert task_of(tmp_path, text.replace("header: no", "header: auto")).layout == Tsv(columns, "auto")


def test_a_command_takes_a_name_or_a_file_and_questions_without_answer_need_their_metric(tmp_path: Path) -> None:
    assert find_task("mrpc") is TASKS["mrpc"]
    assert find_task(str(write(tmp_path / "mine.yml", REVIEWS))).name == "mine"
    with pytest.raises(InputError, match="'colla'; did you mean cola"):
        find_task("colla")
    with pytest.raises(InputError, match=r"missing.yaml: "):
        find_task(str(tmp_path / "missing.yaml"))
    with pytest.raises(InputError, match="metric: squad_v1"):
        checked(replace(TASKS["squad2"], metric="squad_v1"))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("metric:", "metrc:", "unknown key metrc; did you mean metric"),
        ("metric:", "folders: [reviews]\nmetric:", "unknown key folders"),
        ("metric: accuracy", "", "metric: is missing"),
        ("accuracy", "acuracy", "metric: 'acuracy' .*did you mean accuracy"),
        ("accuracy", "squad_v1", "metric: 'squad_v1'"),
        ("accuracy", "accuracy_f1\nlabels: [a, b]", "metric: accuracy_f1 .*'a'"),
        ("kind: classification", "", "kind: is missing"),
        ("kind: classification", "kind: clasification", "kind: 'clasification' .*did you mean classif"),
        ("kind: classification", "kind: [classification]", r"kind: \['classification'\]"),
        ("language: en", "language: fr", "language: 'fr'"),
        ("layout: tsv", "layout: squad", "layout: squad"),
        ("layout: tsv", "layout: text_folders", "unknown key columns"),
        ("columns: {text_a: review, label: stars}", "", "columns: is missing"),
        ("text_a: review", "text: review", "columns: 'text' .*did you mean text_b"),
        ("text_a: review, ", "", "columns: text_a is missing"),
        ("review", "0", "columns: "),
        ("review", "true", "columns.text_a: "),
        ("{text_a: review, label: stars}", "[a]", "columns: "),
        ("train: train.tsv, ", "", "files: .*'train'"),
        ("{train: train.tsv, dev: [a.tsv, b.tsv], test: test.tsv}", "train.tsv", "files: "),
        (", dev:", ", dev/x:", "files: 'dev/x'"),
        (", dev:", ", '..':", "files: '..'"),
        ("[test]", "[tset]", "unlabelled: .*'tset' .*did you mean test"),
        ("[a.tsv, b.tsv]", "yes", "files.dev: .*True"),
        ("[a.tsv, b.tsv]", "[]", "files.dev: "),
        ("metric:", "labels: [yes, no]\nmetric:", "labels: .*True"),
        ("metric:", "labels: [a, a]\nmetric:", "labels: .*twice"),
        ("metric:", "labels: a\nmetric:", "labels: "),
        ("metric:", "labels: []\nmetric:", "labels: there are none"),
        ("metric:", "names: [review, stars]\nmetric:", "names: .*header: no"),
        ("metric:", "header: maybe\nmetric:", "header: .*'maybe'"),
        ("metric:", "clean: soap\nmetric:", "clean: .*'soap'"),
        ("metric:", "unanswerable: 1\nmetric:", "unanswerable: .*1"),
        ("metric:", "unanswerable: true\nmetric:", "unanswerable: is for span"),
        ("metric:", "score_range: [5, 0]\nmetric:", "score_range: "),
        ("metric:", "score_range: [no, yes]\nmetric:", "score_range: .*False"),
        ("metric:", "score_range: [0, 5]\nmetric:", "score_range: is for regression"),
        ("metric:", "kind: span\nmetric:", "kind is given twice"),
        ("metric:", "name: me/reviews\nmetric:", "name: 'me/reviews'"),
    ],
)
def test_mistakes_are_named_with_file_and_key(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(InputError, match=rf"reviews.yaml.*: .*{message}"):
        task_of(tmp_path, edited(old, new))


def test_labels_are_for_kinds_that_have_them(tmp_path: Path) -> None:
    text = edited("kind: classification", "kind: regression").replace("label: stars", "score: stars")
    text = text.replace("accuracy", "correlation")
    assert task_of(tmp_path, text + "score_range: [1, 5]\n").score_range == (1.0, 5.0)
    with pytest.raises(InputError, match="labels: is for classification, multi_label, tagging, not for regression"):
        task_of(tmp_path, text + "labels: [a, b]\n")
