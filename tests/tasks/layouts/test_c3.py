"""C3's list of documents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reader.errors import InputError
from tasks.layouts.clue import C3
from tasks.layouts.rows import BadRow
from tests.support.task_files import read, values, write_json

QUESTION = {"question": "什么?", "choice": ["一", "二"], "answer": "二"}
DOCUMENT = [["男：甲", "女：乙"], [QUESTION, QUESTION], "10-74"]


def test_a_row_is_a_question_and_ids_differ_between_files(tmp_path: Path) -> None:
    paths = [write_json(tmp_path / f"c3-{part}-dev.json", [DOCUMENT]) for part in "dm"]
    rows = values(C3(), *paths)
    assert rows[0] == {
        "id": "c3-d-dev/10-74-0",
        "context": "男：甲\n女：乙",
        "question": "什么?",
        "options": ["一", "二"],
        "answer": "二",
    }
    assert len({row["id"] for row in rows}) == 4


def test_questions_of_test_files_have_an_id_and_no_answer(tmp_path: Path) -> None:
    path = write_json(tmp_path / "test.json", [[["x"], [{"question": "?", "choice": ["a", "b"], "id": 5}], "1"]])
    [row] = values(C3(), path, labelled=False)
    assert row == {"id": "5", "context": "x", "question": "?", "options": ["a", "b"]}


@pytest.mark.parametrize("document", [[["x"], []], ["x", [QUESTION], "1"], [[1], [QUESTION], "1"], {}])
def test_other_documents_are_bad_rows(tmp_path: Path, document: Any) -> None:
    [bad] = read(C3(), write_json(tmp_path / "t.json", [document]))
    assert isinstance(bad, BadRow)
    assert str(bad.place).endswith("t.json, document 0")


def test_a_missing_key_is_a_bad_row_and_other_json_is_refused(tmp_path: Path) -> None:
    [bad] = read(C3(), write_json(tmp_path / "t.json", [[["x"], [{"question": "?", "choice": []}], "1"]]))
    assert isinstance(bad, BadRow)
    assert bad.reason == "no 'answer'"
    with pytest.raises(InputError, match="expected a list"):
        read(C3(), write_json(tmp_path / "t.json", {}))
