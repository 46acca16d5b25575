"""CLUENER's entities."""

from __future__ import annotations

from pathlib import Path

from tasks.layouts.clue import Cluener
from tasks.layouts.rows import BadRow
from tests.support.task_files import read, values, write_lines


def test_the_last_character_of_a_span_is_inclusive_in_the_file(tmp_path: Path) -> None:
    label = {"name": {"叶老桂": [[4, 6]]}, "company": {"浙商": [[0, 1], [7, 8]]}}
    [row] = values(Cluener(), write_lines(tmp_path / "t", {"text": "浙商信贷叶老桂浙商", "label": label}))
    assert row["entities"] == [("name", 4, 7, "叶老桂"), ("company", 0, 2, "浙商"), ("company", 7, 9, "浙商")]
    assert all(row["text"][start:end] == surface for _, start, end, surface in row["entities"])


def test_test_files_have_an_id_and_no_label(tmp_path: Path) -> None:
    assert values(Cluener(), write_lines(tmp_path / "t", {"id": 0, "text": "x"}), labelled=False) == [
        {"id": 0, "text": "x"}
    ]


def test_other_objects_are_bad_rows(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "t", {"label": {}}, {"text": "x"}, {"text": "x", "label": {"name": {"x": [0, 0]}}})
    assert [isinstance(row, BadRow) for row in read(Cluener(), path)] == [True] * 3
