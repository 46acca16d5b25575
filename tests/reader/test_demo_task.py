"""The task that is made of a text: its labels and rows."""

from __future__ import annotations

from collections import Counter

from reader.demo_task import MAX_LABELS, MAX_ROWS, MIN_CHARACTERS, Row, description, task_tables


def rows(**counts: int) -> list[Row]:
    return [(source, f"paragraph {i:04d} of {source}") for source, count in counts.items() for i in range(count)]


def labels(table: str) -> Counter[str]:
    header, *lines = table.splitlines()
    assert header == "text\tsource"
    return Counter(line.split("\t")[1] for line in lines)


def test_the_sources_with_most_held_out_paragraphs_are_the_labels() -> None:
    dev = rows(**{f"s{i}": 10 + i for i in range(MAX_LABELS + 2)}, only_dev=99)
    train = rows(**{f"s{i}": 20 for i in range(MAX_LABELS + 2)}, only_train=99)
    tables = task_tables(train, dev)
    assert list(tables) == ["train.tsv", "dev.tsv"]
    assert labels(tables["dev.tsv"]) == {f"s{i}": 10 + i for i in range(2, MAX_LABELS + 2)}
    assert labels(tables["train.tsv"]) == {f"s{i}": 20 for i in range(2, MAX_LABELS + 2)}


def test_of_many_paragraphs_some_at_even_distances_are_rows() -> None:
    tables = task_tables(rows(a=1000, b=30), rows(a=2, b=2))
    lines = [line.split("\t") for line in tables["train.tsv"].splitlines()[1:]]
    found = [text for text, label in lines if label == "a"]
    assert len(found) == MAX_ROWS["train"]
    assert found[:3] == [f"paragraph {i:04d} of a" for i in (0, 2, 5)]
    assert len(lines) == MAX_ROWS["train"] + 30


def test_a_text_of_one_source_or_of_short_lines_makes_no_task() -> None:
    assert task_tables(rows(a=9), rows(a=9)) == {}
    short = [("b", "x" * (MIN_CHARACTERS - 1))]
    assert task_tables(rows(a=9) + short, rows(a=9) + short) == {}


def test_the_description_has_what_always_answering_one_label_scores() -> None:
    table = task_tables(rows(a=1, b=3), rows(a=1, b=1))["train.tsv"]
    assert description(table) == "4 rows of 2 labels (a, b); always answering b is right in 75.0%"
