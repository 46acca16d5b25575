"""The text for a first model: English of the Python installation, or text of the user."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from pathlib import Path

import pytest

from reader.demo_text import (
    MAX_LABELS,
    MAX_LINES,
    MAX_ROWS,
    MIN_CHARACTERS,
    Document,
    Row,
    description,
    documents,
    documents_of,
    main,
    task_tables,
    write_text,
)
from reader.errors import InputError
from reader.system.output_files import claimed_file
from tests.support.commands import assert_one_line_error, call


def test_pythons_documentation_is_prose_with_its_package() -> None:
    found = list(islice(documents(), 400))
    assert found[0].source == "python"
    assert len({document.source for document in found}) > 1
    assert all(line[-1] in ".:!?" and ">>>" not in line for document in found for line in document.lines)
    assert sum(len(each.text) for each in list(documents(5000))[:-1]) <= 5000


def test_documents_of_files_end_at_blank_lines_and_after_some_lines(tmp_path: Path) -> None:
    (tmp_path / "红楼梦.txt").write_text("一\n二\t三  四\n\n\n五", encoding="utf-8")
    (tmp_path / "b.txt").write_text("x\n" * (MAX_LINES + 1), encoding="utf-8")
    found = list(documents_of([tmp_path / "红楼梦.txt", tmp_path / "b.txt"]))
    assert found[:2] == [Document("红楼梦", ["一", "二 三 四"]), Document("红楼梦", ["五"])]
    assert [(each.source, len(each.lines)) for each in found[2:]] == [("b", MAX_LINES), ("b", 1)]


def test_a_document_is_either_for_training_or_held_out(tmp_path: Path) -> None:
    texts = [Document(f"s{i % 2}", [f"this is the paragraph number {i}"]) for i in range(300)]
    paths = write_text(tmp_path / "text", texts)
    assert [path.name for path in paths] == ["train.txt", "held_out.txt", "train.tsv", "dev.tsv"]
    train, held_out = (path.read_text().split("\n\n")[:-1] for path in paths[:2])
    assert 0 < len(held_out) < 30
    assert sorted(train + held_out) == sorted(each.lines[0] for each in texts)
    rows = [[line.split("\t")[0] for line in path.read_text().splitlines()[1:]] for path in paths[2:]]
    assert set(rows[0]) <= set(train)
    assert set(rows[1]) <= set(held_out)


def test_too_short_a_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="too short to hold out a part of it"):
        write_text(tmp_path / "text", [Document("a", ["one line"])])
    message = f"{tmp_path}/none: no such file, folder or pattern"
    assert_one_line_error(call(main, "--input", f"{tmp_path}/none", "--output", f"{tmp_path}/text"), message)


def test_files_that_exist_are_replaced_only_if_asked(tmp_path: Path) -> None:
    (tmp_path / "own.txt").write_text("".join(f"line number {i} of the text\n" for i in range(2000)))
    arguments = ("--input", str(tmp_path / "own.txt"), "--output", str(tmp_path / "text"))
    assert call(main, *arguments).returncode == 0
    assert_one_line_error(call(main, *arguments), f"{tmp_path / 'text' / 'train.txt'}: already exists")
    assert call(main, *arguments, "--overwrite").returncode == 0


def test_a_text_of_ones_own_is_never_replaced(tmp_path: Path) -> None:
    own = tmp_path / "train.txt"
    own.write_text("a line of my own\n" * 100)
    message = f"--output: {own} is also an input; choose another --output"
    assert_one_line_error(call(main, "--input", str(own), "--output", str(tmp_path), "--overwrite"), message)
    assert own.read_text() == "a line of my own\n" * 100


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


def test_one_process_at_a_time_writes_the_text(tmp_path: Path) -> None:
    (tmp_path / "own.txt").write_text("".join(f"line number {i} of the text\n" for i in range(2000)))
    arguments = ("--input", str(tmp_path / "own.txt"), "--output", str(tmp_path))
    with claimed_file("--output", tmp_path / "dev.tsv", overwrite=False):
        done = call(main, *arguments)
    assert (done.returncode, done.stderr.startswith(f"error: {tmp_path}/dev.tsv: is being written by ")) == (1, True)
    assert [path.name for path in tmp_path.iterdir()] == ["own.txt"]
    assert call(main, *arguments).returncode == 0
