"""SQuAD's JSON, DuReader's preprocessed files, and RACE's articles."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reader.errors import InputError
from tasks.layouts.folders import Race
from tasks.layouts.questions import DuReaderDocuments, Squad
from tasks.layouts.rows import BadRow, OmittedRow, Row
from tests.support.task_files import read, values, write, write_json, write_lines

ANSWER = {"text": "b", "answer_start": 2, "id": "1"}


def squad(*questions: Any) -> dict[str, Any]:
    paragraph = {"context": "a b c", "qas": list(questions)}
    return {"data": [{"title": "t", "paragraphs": [{"context": "x", "qas": []}]}, {"paragraphs": [paragraph]}]}


def test_a_row_is_a_question_with_the_context_of_its_paragraph(tmp_path: Path) -> None:
    path = write_json(tmp_path / "t.json", squad({"id": "q", "question": "?", "answers": [ANSWER]}))
    [row] = read(Squad(), path)
    assert row.values == {"id": "q", "question": "?", "context": "a b c", "answers": [ANSWER]}
    assert str(row.place) == f"{path}, data[1].paragraphs[0].qas[0] (id q)"


def test_version_2_has_questions_without_answers(tmp_path: Path) -> None:
    plausible = {"id": "q", "question": "?", "is_impossible": True, "plausible_answers": [ANSWER]}
    empty = {"id": "r", "question": "?", "is_impossible": True, "answers": []}
    path = write_json(tmp_path / "t.json", squad(plausible, empty))
    assert [(row["answers"], row["is_impossible"]) for row in values(Squad(), path)] == [([], True), ([], True)]


def test_gold_values_are_not_read_without_labels(tmp_path: Path) -> None:
    path = write_json(tmp_path / "t.json", squad({"id": "q", "question": "?", "answers": [ANSWER]}, {"id": "r"}))
    question, bad = read(Squad(), path, labelled=False)
    assert "answers" not in question.values
    assert bad.reason == "no 'question'"
    # A user's own questions need no IDs.
    assert values(Squad(), write_json(tmp_path / "own.json", squad({"question": "?"})), labelled=False)


def test_what_has_no_id_question_answers_paragraphs_or_questions_is_a_bad_row(tmp_path: Path) -> None:
    question = {"id": "q", "question": "?", "answers": [ANSWER]}
    questions = [{"question": "?"}, {"id": "q", "question": "?"}, "text", question]
    paragraphs = [{"context": "x"}, "x", {"context": "x", "qas": questions}]
    path = write_json(tmp_path / "t.json", {"data": [{"paragraph": []}, None, {"paragraphs": paragraphs}]})
    *bad, good = read(Squad(), path)
    assert isinstance(good, Row)
    assert [(row.place.part, row.reason[:11]) for row in bad if isinstance(row, BadRow)] == [
        ("data[0]", "no list 'pa"),
        ("data[1]", "no list 'pa"),
        ("data[2].paragraphs[0]", "no list 'qa"),
        ("data[2].paragraphs[1]", "no list 'qa"),
        ("data[2].paragraphs[2].qas[0]", "no 'id'"),
        ("data[2].paragraphs[2].qas[1] (id q)", "no 'answers"),
        ("data[2].paragraphs[2].qas[2]", "expected an"),
    ]


def test_cmrcs_own_form_is_read(tmp_path: Path) -> None:
    questions = [
        {"query_text": "?", "query_id": "T_Q0", "answers": ["b", "b"]},
        {"query_text": "?", "query_id": "T_Q1"},
    ]
    paragraph = {"context_id": "T", "context_text": "a b", "title": "t", "qas": questions}
    row, *bad = read(Squad(), write_json(tmp_path / "t.json", [paragraph, {"context_text": "a"}]))
    assert row.values == {"id": "T_Q0", "question": "?", "context": "a b", "answers": ["b", "b"]}
    assert row.place.part == "[0].qas[0] (id T_Q0)"
    assert [(row.place.part, row.reason) for row in bad] == [
        ("[0].qas[1] (id T_Q1)", "no 'answers'"),
        ("[1]", "no list 'qas'"),
    ]


@pytest.mark.parametrize("value", [[], {}, {"data": {}}])
def test_other_json_is_refused(tmp_path: Path, value: Any) -> None:
    with pytest.raises(InputError, match=r"t\.json: no list 'data'"):
        read(Squad(), write_json(tmp_path / "t.json", value))
    with pytest.raises(InputError, match=r"c\.json:2: not JSON"):
        read(Squad(), write(tmp_path / "c.json", '{"data":\n[{"paragraphs": [{'))


def dureader(**fields: Any) -> dict[str, Any]:
    documents = [
        {"segmented_paragraphs": [["first", "one"]], "most_related_para": 0},
        {"segmented_paragraphs": [["no"], ["上海", "迪士尼", "可以", "带"]], "most_related_para": 1},
    ]
    return {"question_id": 7, "question": "?", "documents": documents, **fields}


def test_dureaders_answer_is_a_span_of_one_document(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "t.json", dureader(answer_docs=[1], answer_spans=[[1, 2]]))
    [row] = values(DuReaderDocuments(), path)
    assert row["context"] == "上海迪士尼可以带"
    [answer] = row["answers"]
    assert answer == {"text": "迪士尼可以", "answer_start": 2}
    assert row["context"][answer["answer_start"] :].startswith(answer["text"])
    [test_row] = values(DuReaderDocuments(), path, labelled=False)
    assert test_row == {"id": "7", "question": "?", "context": "firstone"}


def test_dureaders_questions_without_span_are_omitted_and_broken_ones_bad(tmp_path: Path) -> None:
    answers = [([], []), ([1], [[1, 4]]), ([9], [[1, 4]])]
    lines = [dureader(answer_docs=docs, answer_spans=spans) for docs, spans in answers]
    omitted, *bad = read(DuReaderDocuments(), write_lines(tmp_path / "t.json", *lines, {"question_id": 1}))
    assert isinstance(omitted, OmittedRow)
    assert [isinstance(row, BadRow) for row in bad] == [True] * 3


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
    write_json(tmp_path / "more" / "high" / "1.txt", ARTICLE)
    rows = values(Race(), tmp_path / "high", tmp_path / "more" / "high", tmp_path / "middle")
    assert [row["id"] for row in rows][1:5] == ["high/1-1-0", "high/1-0-1", "high/1-1-1", "middle/1-0"]


def test_broken_files_and_answers_are_bad_rows_and_a_folder_without_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"^{tmp_path}: no files"):
        read(Race(), tmp_path)
    write(tmp_path / "1.txt", '{"article":\n')
    write_json(tmp_path / "2.txt", {**ARTICLE, "answers": ["A"]})
    write_json(tmp_path / "3.txt", {**ARTICLE, "answers": ["A", "5"]})
    write_json(tmp_path / "4.txt", [])
    rows = read(Race(), tmp_path)
    assert [isinstance(row, Row) for row in rows] == [False, False, True, False, False]
    for row, place in ((rows[0], "1.txt:2"), (rows[1], "2.txt"), (rows[3], "3.txt, question 2"), (rows[4], "4.txt")):
        assert str(row.place) == f"{tmp_path}/{place}"
