"""ChID's passages and answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from reader.errors import InputError
from tasks.layouts.clue import BLANK, Chid
from tasks.layouts.rows import BadRow, Row
from tests.support.task_files import read, values, write_json, write_lines

CANDIDATES = [f"成语{number}" for number in range(10)]
LINE = {"content": ["甲#idiom1#乙#idiom2#丙", "#idiom3#"], "candidates": CANDIDATES}


def test_each_blank_of_each_passage_is_a_row_of_one_group(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "dev.json", LINE, {"content": ["#idiom4#"], "candidates": CANDIDATES[:7]})
    answers = write_json(tmp_path / "a.json", {f"#idiom{number}#": number for number in range(1, 5)})
    rows = values(Chid(), path, answers)
    assert [(row["id"], row["answer"], row["group"]) for row in rows] == [
        ("#idiom1#", 1, "1"),
        ("#idiom2#", 2, "1"),
        ("#idiom3#", 3, "1"),
        ("#idiom4#", 4, "2"),
    ]
    assert [row["context"] for row in rows] == ["甲____乙……丙", "甲……乙____丙", "____", "____"]
    for row in rows:
        assert row["context"][slice(*row["blank"])] == BLANK
        assert "idiom" not in row["context"]
    assert [len(row["options"]) for row in rows] == [10, 10, 10, 7]


def test_files_without_labels_come_alone(tmp_path: Path) -> None:
    rows = values(Chid(), write_lines(tmp_path / "test.json", LINE), labelled=False)
    assert [row["id"] for row in rows] == ["#idiom1#", "#idiom2#", "#idiom3#"]
    assert not any("answer" in row for row in rows)


def test_answers_and_blanks_must_belong_together(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "dev.json", LINE, {"content": ["x"], "candidates": CANDIDATES}, {"content": "x"})
    answers = write_json(tmp_path / "a.json", {"#idiom1#": 0, "#idiom2#": 0, "#idiom9#": 0})
    one, two, *bad = read(Chid(), path, answers)
    assert isinstance(one, Row)
    assert isinstance(two, Row)
    assert [(str(row.place), row.reason[:16]) for row in bad if isinstance(row, BadRow)] == [
        (f"{path}:1, #idiom3#", "no answer for th"),
        (f"{path}:2", "a passage withou"),
        (f"{path}:3", "no list 'content"),
        (f"{answers}, #idiom9#", "an answer for a "),
    ]
    with pytest.raises(InputError, match="answer file of ChID"):
        read(Chid(), path, write_json(tmp_path / "b.json", []))
