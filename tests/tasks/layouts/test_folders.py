"""One folder for each class (IMDb)."""

from __future__ import annotations

from pathlib import Path

import pytest

from reader.errors import InputError
from tasks.layouts.benchmarks import TextFolders
from tasks.layouts.rows import BadRow, Row
from tests.support.task_files import read, values, write

IMDB = TextFolders(("neg", "pos"), clean="br_to_space")


def test_the_folder_is_the_label(tmp_path: Path) -> None:
    write(tmp_path / "pos" / "0_9.txt", "good<br /><br />film")
    write(tmp_path / "neg" / "0_2.txt", "bad")
    write(tmp_path / "unsup" / "0_0.txt", "not read")
    write(tmp_path / "pos" / "urls.html", "not read")
    assert values(IMDB, tmp_path) == [
        {"id": "neg/0_2", "text_a": "bad", "label": "neg"},
        {"id": "pos/0_9", "text_a": "good  film", "label": "pos"},
    ]


def test_texts_of_several_folders_have_different_ids(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        for label in ("neg", "pos"):
            write(tmp_path / folder / label / "1.txt", "x")
    folders = tmp_path / "a", tmp_path / "b"
    assert [row["id"] for row in values(IMDB, *folders)] == ["0/neg/1", "0/pos/1", "1/neg/1", "1/pos/1"]
    folders = tmp_path / "a" / "neg", tmp_path / "b" / "neg"
    assert [row["id"] for row in values(IMDB, *folders, labelled=False)] == ["0/1", "1/1"]


def test_a_missing_or_empty_class_is_refused_and_a_file_that_is_not_utf8_a_bad_row(tmp_path: Path) -> None:
    write(tmp_path / "neg" / "1.txt", b"x\n\xff")
    with pytest.raises(InputError, match="no folder 'pos'"):
        read(IMDB, tmp_path)
    (tmp_path / "pos").mkdir()
    with pytest.raises(InputError, match=r"pos: no files \*\.txt"):
        read(IMDB, tmp_path)
    write(tmp_path / "pos" / "1.txt", "x")
    bad, good = read(IMDB, tmp_path)
    assert isinstance(bad, BadRow)
    assert str(bad.place) == f"{tmp_path / 'neg' / '1.txt'}:2"
    assert isinstance(good, Row)
