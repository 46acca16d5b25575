"""A task of one's own from a YAML file."""

from __future__ import annotations

import dataclasses
from dataclasses import replace
from pathlib import Path

import pytest

from reader.errors import InputError
from tasks.kinds.catalog import checked
from tasks.kinds.multiple_choice import MultipleChoiceExample
from tasks.kinds.sentences import SentenceExample
from tasks.kinds.task import Source, Split, Task
from tasks.layouts.conll import Conll
from tasks.layouts.tables import Tsv
from tasks.registry import TASKS
from tasks.registry.task_file import LAYOUTS, PARSERS, find_task, read_task_file
from tests.support.task_files import load, write, write_lines

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


def test_a_short_file_makes_a_row_like_those_of_the_registry(tmp_path: Path) -> None:
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


def test_its_labels_are_those_of_the_training_file_unless_it_names_them(tmp_path: Path) -> None:
    write(tmp_path / "train.tsv", "stars\treview\n2\tbad\n10\tgood\n")
    for name in ("a.tsv", "b.tsv"):
        write(tmp_path / name, "review\tstars\nfine\t10\nodd\t3\n")
    with pytest.raises(InputError, match=r"a.tsv:3: the label '3' is none of those of the training file: 2, 10"):
        load(task_of(tmp_path, REVIEWS), tmp_path, "dev")
    named = task_of(tmp_path, REVIEWS + "labels: [2, '10', 3]\n")
    assert named.labels == ("2", "10", "3")
    examples = load(named, tmp_path, "dev").examples
    assert [e.gold for e in examples if isinstance(e, SentenceExample)] == ["10", "3", "10", "3"]


def test_every_setting_reaches_the_task(tmp_path: Path) -> None:
    task = task_of(
        tmp_path,
        """
        name: mine
        title: My task
        kind: tagging
        language: zh
        layout: conll
        token_column: 2
        tag_column: -2
        files: {train: t, dev: d}
        labels: [PER]
        metric: conlleval
        """,
    )
    expected = {
        "name": "mine",
        "title": "My task",
        "layout": Conll(2, -2),
        "labels": ("PER",),
    }
    assert {name: getattr(task, name) for name in expected} == expected
    task = task_of(tmp_path, REVIEWS + "label_aliases: {bad: '1'}\nomitted_labels: ['-']\nempty_texts: true\n")
    assert (task.label_aliases, task.omitted_labels, task.empty_texts) == ({"bad": "1"}, ("-",), True)
    assert task_of(tmp_path, REVIEWS + "label_aliases: [bad, good]\n").label_aliases == {"0": "bad", "1": "good"}


def test_options_of_tsv_are_read_with_their_types(tmp_path: Path) -> None:
    text = edited("columns: {text_a: review, label: stars}", "columns: {text_a: [1, 2], label: 3}\nheader: no")
    layout = task_of(
        tmp_path,
        text
        + "names: [a, b, c]\nlist_separator: '|'\nwhere: {c: 1, 3: zh}\nclean: br_to_space\nomit_short_rows: yes\n",
    ).layout
    assert layout == Tsv(
        {"text_a": (1, 2), "label": 3}, "no", ("a", "b", "c"), "|", {"c": "1", 3: "zh"}, True, "br_to_space"
    )
    assert task_of(tmp_path, text.replace("header: no", "header: auto")).layout == Tsv(
        {"text_a": (1, 2), "label": 3}, "auto"
    )


def test_every_option_of_every_layout_can_be_set() -> None:
    for layout_type in LAYOUTS.values():
        assert {field.name for field in dataclasses.fields(layout_type)} <= set(PARSERS), layout_type


def test_other_kinds_are_read_from_json_lines(tmp_path: Path) -> None:
    head = "language: en\nlayout: json_lines\nfiles: {train: t}\n"
    write_lines(
        tmp_path / "t",
        {"c": "a b", "q": "?", "o": ["x", "y"], "right": "B", "a": ["b"], "w": ["a", "b"], "t": ["O", "B-X"]},
    )
    choice = "kind: multiple_choice\nmetric: accuracy\ncolumns: {context: c, question: q, options: o, answer: right}\n"
    span = "kind: span\nmetric: squad_v2\nunanswerable: true\ncolumns: {context: c, question: q, answers: a}\n"
    tagging = "kind: tagging\nmetric: conlleval\ncolumns: {tokens: w, tags: t}\n"
    [of_choice], [of_span], [of_tagging] = (
        load(task_of(tmp_path, head + text), tmp_path).examples for text in (choice, span, tagging)
    )
    assert isinstance(of_choice, MultipleChoiceExample)
    assert of_choice.answer == 1
    assert of_span.answers
    assert of_span.answers[0].span == (2, 3)
    assert of_tagging.tags == ("O", "B-X")


def test_questions_without_answer_need_the_metric_for_them() -> None:
    with pytest.raises(InputError, match="metric: squad_v1 needs an answer to every question; choose squad_v2"):
        checked(replace(TASKS["squad2"], metric="squad_v1"))


def test_a_command_takes_a_name_or_a_file(tmp_path: Path) -> None:
    assert find_task("mrpc") is TASKS["mrpc"]
    assert find_task(str(write(tmp_path / "mine.yml", REVIEWS))).name == "mine"
    with pytest.raises(InputError, match=r"missing.yaml: cannot read the config"):
        find_task(str(tmp_path / "missing.yaml"))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("metric:", "metrc:", r"unknown key metrc; did you mean metric\? \(the layout is tsv\)"),
        ("metric: accuracy", "", "metric: is missing"),
        ("accuracy", "acuracy", "metric: 'acuracy' does not apply to classification; .*did you mean accuracy"),
        ("accuracy", "squad_v1", "metric: 'squad_v1' does not apply to classification; choose one of accuracy, "),
        (
            "accuracy",
            "accuracy_f1\nlabels: [a, b]",
            "metric: accuracy_f1 needs the labels 0 and 1, and the task has 'a'",
        ),
        ("kind: classification", "", "kind: is missing; give one of classification, multi_label, regression"),
        ("kind: classification", "kind: clasification", "kind: 'clasification' is none of .*did you mean classif"),
        ("kind: classification", "kind: [classification]", r"kind: \['classification'\] is none of classification"),
        ("language: en", "language: fr", "language: 'fr' is none of en, zh"),
        ("layout: tsv", "layout: squad", "layout: squad holds span, not classification"),
        ("layout: tsv", "layout: text_folders", "unknown key columns; .*layout is text_folders"),
        ("columns: {text_a: review, label: stars}", "", "columns: is missing; the layout tsv needs it"),
        ("text_a: review", "text: review", "columns: 'text' is no value of classification .*did you mean text_b"),
        ("text_a: review, ", "", "columns: text_a is missing; give its column by name"),
        ("review", "0", "columns.text_a: expected the name of a column, or its number counted from 1, found 0"),
        ("review", "true", "columns.text_a: expected the name of a column"),
        ("{text_a: review, label: stars}", "[a]", r"columns: expected a map {value: column}, found \['a'\]"),
        ("train: train.tsv, ", "", "files: no labelled split 'train'"),
        ("{train: train.tsv, dev: [a.tsv, b.tsv], test: test.tsv}", "train.tsv", "files: expected `train: FILE`, `dev"),
        (", dev:", ", dev/x:", "files: 'dev/x' cannot be the name"),
        (", dev:", ", '..':", "files: '..' cannot be the name"),
        ("[test]", "[tset]", "unlabelled: there is no split 'tset' in `files`; did you mean test"),
        ("[a.tsv, b.tsv]", "3", "files.dev: expected a text, found 3"),
        ("[a.tsv, b.tsv]", "[]", r"files.dev: expected a text, or a list of texts, found \[\]"),
        (
            "test: test.tsv}\nunlabelled: [test]",
            "5: x.tsv}\nunlabelled: [test]",
            "unlabelled: there is no split 'test'",
        ),
        (
            "metric:",
            "labels: [yes, no]\nmetric:",
            "labels: expected labels; put quotation marks around each, found True",
        ),
        ("metric:", 'labels: ["a\\tb", c]\nmetric:', r"labels: the label 'a\\tb' has a tab or a line break"),
        ("metric:", "labels: [a, a]\nmetric:", "labels: a label is given twice"),
        ("metric:", "labels: a\nmetric:", r"labels: expected a list \[a, b\], found 'a'"),
        ("metric:", "names: [review, stars]\nmetric:", "names: are those of a file without a header; give header: no"),
        ("metric:", "header: no\nnames: []\nmetric:", r"names: expected a text, or a list of texts, found \[\]"),
        ("metric:", "header: maybe\nmetric:", "header: expected one of yes, no, auto, found 'maybe'"),
        ("metric:", "clean: soap\nmetric:", "clean: expected one of br_to_space, repair_entities, found 'soap'"),
        ("metric:", "unanswerable: 1\nmetric:", "unanswerable: expected true or false, found 1"),
        ("metric:", "unanswerable: true\nmetric:", "unanswerable: is for span, not for classification; remove it"),
        ("metric:", "score_range: [5, 0]\nmetric:", r"score_range: expected two numbers \[least, greatest\]"),
        ("metric:", "score_range: [no, yes]\nmetric:", "score_range: expected two numbers .* found .False, True."),
        (
            "metric:",
            "score_range: [0, 5]\nmetric:",
            "score_range: is for regression, not for classification; remove it",
        ),
        ("metric:", "kind: span\nmetric:", "kind is given twice"),
        ("metric:", "name: '..'\nmetric:", "name: '..' cannot be the name"),
        ("metric:", "name: me/reviews\nmetric:", "name: 'me/reviews' cannot be the name"),
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
