"""The text for a first model: English of the Python installation, or text of one's own."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest

from reader.demo_text import MAX_LINES, Document, documents, documents_of, main, write_text
from reader.errors import InputError
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
