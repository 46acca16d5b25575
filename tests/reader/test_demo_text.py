"""The text for a first model: English of the Python installation, or text of the user."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest

from reader.demo_text import (
    MAX_LINES,
    documents,
    documents_of,
    main,
    sentences,
    swapped,
    write_text,
)
from reader.errors import InputError
from reader.text.text_files import TextFiles
from tests.support.commands import assert_one_line_error, call

TEXT = "".join(f"line number {i} of the text that is mine\n" for i in range(2000))


def test_pythons_documentation_is_prose_and_documents_of_files_end_at_blank_lines(tmp_path: Path) -> None:
    found = list(islice(documents(), 400))
    assert len(found) == 400
    lines = [line for document in found for line in document]
    assert all(line[-1] in ".:!?" and ">>>" not in line for line in lines)
    assert len(set(lines)) == len(lines)
    sizes = [sum(len(line) + 1 for line in document) for document in documents(5000)]
    assert sum(sizes[:-1]) <= 5000 < sum(sizes)
    (tmp_path / "红楼梦.txt").write_text("一\n二\t三  四\n\n\n五", encoding="utf-8")
    (tmp_path / "b.txt").write_text("x\n" * (MAX_LINES + 1), encoding="utf-8")
    found = list(documents_of(TextFiles([tmp_path / "红楼梦.txt", tmp_path / "b.txt"])))
    assert found[:2] == [["一", "二 三 四"], ["五"]]
    assert [len(each) for each in found[2:]] == [MAX_LINES, 1]


def numbered(count: int) -> list[list[str]]:
    digits = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
    names = (" ".join(digits[int(digit)] for digit in f"{number:04d}") for number in range(count))
    return [[f"this is the paragraph with the number {name}."] for name in names]


def rows(path: Path) -> list[list[str]]:
    header, *lines = path.read_text().splitlines()
    assert header == "text\twords"
    return [line.split("\t") for line in lines]


def test_a_document_is_for_training_or_held_out_and_no_sentence_of_training_a_row_of_dev(tmp_path: Path) -> None:
    texts = numbered(300)
    paths = write_text(tmp_path / "text", texts)
    assert [path.name for path in paths] == ["train.txt", "held_out.txt", "train.tsv", "dev.tsv"]
    parts = [path.read_text().split("\n\n")[:-1] for path in paths[:2]]
    assert 0 < len(parts[1]) < 30
    assert sorted(parts[0] + parts[1]) == sorted(each[0] for each in texts)
    for part, path in zip(parts, paths[2:], strict=True):
        assert {text for text, label in rows(path) if label == "original"} < set(part)
        assert {text for text, label in rows(path) if label == "swapped"} < set(map(swapped, part))
        assert len(rows(path)) == len(part)
    repeated = "this sentence is in every document of the text."
    paths = write_text(tmp_path / "other", [[repeated, *each] for each in numbered(300)])
    train, dev = ([text for text, _ in rows(path)] for path in paths[2:])
    assert sum(text in (repeated, swapped(repeated)) for text in train) == 1
    assert not {repeated, swapped(repeated)} & set(dev)
    assert dev


@pytest.mark.parametrize(
    ("sentence", "possible"),
    [
        ("a b c, d 1 e", {"b a c, d 1 e"}),  # what is written with other characters is no word
        ("the The", {"the The"}),  # swapped, it would be the same to a vocabulary without case
        ("一二，三", {"二一，三"}),
        ("用Python写", {"Python用写", "用写Python"}),
    ],
)
def test_different_neighbouring_words_are_swapped(sentence: str, possible: set[str]) -> None:
    assert swapped(sentence) in possible


def test_sentences_have_neighbours_and_some_words() -> None:
    long = "a word " * 15
    lines = [
        f"{long}. one two three four five six seven eight nine! one",
        f"{long}word more.",
        "a, b, c, d, e, f, g, h, i.",
        "x" * 50,
    ]
    assert sentences(lines) == [f"{long}.", "one two three four five six seven eight nine!"]
    assert sentences(["这是第一个很长的句子。这也是一个句子吧！短。"]) == [
        "这是第一个很长的句子。",
        "这也是一个句子吧！",
    ]


def test_a_short_text_is_refused_and_files_are_replaced_only_if_asked_and_inputs_never(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="too short"):
        write_text(tmp_path / "text", [["one line"]])
    options = ("--input", f"{tmp_path}/none", "--output", f"{tmp_path}/text")
    assert_one_line_error(call(main, *options), f"{tmp_path}/none: ")
    assert_one_line_error(call(main, *options, "--max_size", "9"), "--max_size: ")
    own = tmp_path / "train.txt"
    own.write_text(TEXT)
    arguments = ("--input", str(own), "--output")
    assert call(main, *arguments, str(tmp_path / "text")).returncode == 0
    assert_one_line_error(call(main, *arguments, str(tmp_path / "text")), f"{tmp_path / 'text' / 'train.txt'}: ")
    assert call(main, *arguments, str(tmp_path / "text"), "--overwrite").returncode == 0
    assert_one_line_error(call(main, *arguments, str(tmp_path), "--overwrite"), f"--output: {own} is also an input")
    assert own.read_text() == TEXT
