"""RACE's folders."""

from __future__ import annotations

from pathlib import Path

import pytest

from reader.errors import InputError
from tasks.layouts.questions import Race
from tasks.layouts.rows import BadRow, Row
from tests.support.task_files import read, values, write, write_json

ARTICLE = {
    "article": "An article.",
    "questions": ["What is _ ?", "Why?"],
    "options": [["a", "b", "c", "d"], ["e", "f", "g", "h"]],
    "answers": ["C", "A"],
    "id": "high1.txt",
}


def test_a_row_is_a_question_and_its_id_has_the_school(tmp_path: Path) -> None:
    for school in ("high", "middle"):
        write_json(tmp_path / school / "1.txt", ARTICLE)
    rows = values(Race(), tmp_path / "high", tmp_path / "middle")
    assert [row["id"] for row in rows] == ["high/1-0", "high/1-1", "middle/1-0", "middle/1-1"]
    first = {"question": "What is _ ?", "options": ["a", "b", "c", "d"], "answer": 2, "context": "An article."}
    assert rows[0] == {"id": "high/1-0", **first}
    assert "answer" not in values(Race(), tmp_path / "high", labelled=False)[0]


def test_broken_files_and_answers_are_bad_rows(tmp_path: Path) -> None:
    write(tmp_path / "1.txt", '{"article":\n')
    write_json(tmp_path / "2.txt", {**ARTICLE, "answers": ["A"]})
    write_json(tmp_path / "3.txt", {**ARTICLE, "answers": ["A", "5"]})
    write_json(tmp_path / "4.txt", [])
    json_error, lengths, good, letter, other = read(Race(), tmp_path)
    assert isinstance(json_error, BadRow)
    assert str(json_error.place) == f"{tmp_path / '1.txt'}:2"
    assert isinstance(lengths, BadRow)
    assert "equally long" in lengths.reason
    assert isinstance(good, Row)
    assert isinstance(letter, BadRow)
    assert str(letter.place).endswith("3.txt, question 1")
    assert isinstance(other, BadRow)


def test_a_folder_without_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no files \*\.txt in this folder"):
        read(Race(), tmp_path)
