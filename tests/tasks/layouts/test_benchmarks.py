"""SQuAD's JSON, RACE's articles; CLUENER, CLUEWSC2020, C3 and ChID; one folder for each class (IMDb)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reader.errors import InputError
from tasks.layouts import benchmarks
from tasks.layouts.benchmarks import BLANK, C3, Chid, Cluener, CluewscMarked, DuReaderDocuments, Race, Squad
from tasks.layouts.rows import BadRow, OmittedRow, Row
from tests.support.task_files import read, values, write, write_json, write_lines

ANSWER = {"text": "b", "answer_start": 2, "id": "1"}


def squad(*questions: Any) -> dict[str, Any]:
    paragraph = {"id": "that of a paragraph", "context": "a b c", "qas": list(questions)}
    return {"data": [{"title": "t", "paragraphs": [{"context": "x", "qas": []}]}, {"paragraphs": [paragraph]}]}


def test_a_row_is_a_question_with_the_context_of_its_paragraph_in_all_forms_of_squad(tmp_path: Path) -> None:
    path = write_json(tmp_path / "t.json", squad({"id": "q", "question": "?", "answers": [ANSWER]}))
    [row] = read(Squad(), path)
    assert row.values == {"id": "q", "question": "?", "context": "a b c", "answers": [ANSWER], "is_impossible": False}
    assert str(row.place) == f"{path}, data[1].paragraphs[0].qas[0] (id q)"
    plausible = {"id": "q", "question": "?", "is_impossible": True, "plausible_answers": [ANSWER]}
    empty = {"id": "r", "question": "?", "is_impossible": True, "answers": []}
    path = write_json(tmp_path / "t.json", squad(plausible, empty))
    assert [(row["answers"], row["is_impossible"]) for row in values(Squad(), path)] == [([], True), ([], True)]
    path = write_json(tmp_path / "t.json", squad({"id": "q", "question": "?", "answers": [1], "is_impossible": "0"}))
    assert values(Squad(), path)[0]["answers"] == [1]  # the kind of task reads the truth value
    path = write_json(tmp_path / "t.json", squad({"id": "q", "question": "?", "answers": [ANSWER]}, {"id": "r"}))
    question, bad = read(Squad(), path, labelled=False)
    assert "answers" not in question.values
    assert bad.reason == "no 'question'"
    # A user's own questions need no IDs.
    assert values(Squad(), write_json(tmp_path / "own.json", squad({"question": "?"})), labelled=False)
    questions = [
        {"query_text": "?", "query_id": "T_Q0", "answers": ["b", "b"]},
        {"query_text": "?", "query_id": "T_Q1"},
    ]
    paragraph = {"context_id": "T", "context_text": "a b", "title": "t", "qas": questions}
    row, bad = read(Squad(), write_json(tmp_path / "t.json", [paragraph]))
    assert row.values == {
        "id": "T_Q0",
        "question": "?",
        "context": "a b",
        "answers": ["b", "b"],
        "is_impossible": False,
    }
    assert row.place.part == "[0].qas[0] (id T_Q0)"
    assert (bad.place.part, bad.reason) == ("[0].qas[1] (id T_Q1)", "no 'answers'")


def test_what_has_no_id_question_or_answers_is_bad_and_other_json_refused(tmp_path: Path) -> None:
    question = {"id": "q", "question": "?", "answers": [ANSWER]}
    *bad, good = read(
        Squad(), write_json(tmp_path / "t.json", squad({"question": "?"}, {"id": "q", "question": "?"}, question))
    )
    assert isinstance(good, Row)
    assert [(row.place.part, row.reason) for row in bad if isinstance(row, BadRow)] == [
        ("data[1].paragraphs[0].qas[0]", "no 'id'"),
        ("data[1].paragraphs[0].qas[1] (id q)", "no 'answers'"),
    ]
    others = [{"paragraph": []}], [None], [{"paragraphs": [{"context": "x"}]}], [{"paragraphs": "x"}], 5
    for value in ({}, 3, *({"data": each} for each in (*others, squad("text")["data"]))):
        with pytest.raises(InputError, match=r"t\.json: no"):
            read(Squad(), write_json(tmp_path / "t.json", value))
    with pytest.raises(InputError, match=r"c\.json:2: not JSON"):
        read(Squad(), write(tmp_path / "c.json", '{"data":\n[{"paragraphs": [{'))


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


def test_a_broken_file_or_a_folder_without_files_is_refused_and_another_answer_a_bad_row(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"^{tmp_path}: no files"):
        read(Race(), tmp_path)
    write_json(tmp_path / "1.txt", {**ARTICLE, "answers": ["A", "5"]})
    good, bad = read(Race(), tmp_path)
    assert isinstance(good, Row)
    assert str(bad.place) == f"{tmp_path}/1.txt, question 2"
    assert "'5'" in bad.reason
    for text in ('{"article":\n', *map(json.dumps, ({**ARTICLE, "answers": ["A"]}, [], {**ARTICLE, "questions": 2}))):
        write(tmp_path / "1.txt", text)
        with pytest.raises(InputError, match=f"^{tmp_path}/1.txt:.* no"):
            read(Race(), tmp_path)


def test_the_last_character_of_a_span_is_inclusive_in_the_file(tmp_path: Path) -> None:
    label = {"name": {"叶老桂": [[4, 6]]}, "company": {"浙商": [[0, 1], [7, 8]]}}
    [row] = values(Cluener(), write_lines(tmp_path / "t", {"text": "浙商信贷叶老桂浙商", "label": label}))
    assert row["entities"] == [("name", 4, 7, "叶老桂"), ("company", 0, 2, "浙商"), ("company", 7, 9, "浙商")]
    unlabelled = write_lines(tmp_path / "u", {"id": 0, "text": "x"})
    assert values(Cluener(), unlabelled, labelled=False) == [{"id": 0, "text": "x"}]
    bad = write_lines(tmp_path / "b", {"label": {}}, {"text": "x"}, {"text": "x", "label": {"name": {"x": [0, 0]}}})
    assert [isinstance(row, BadRow) for row in read(Cluener(), bad)] == [True] * 3


def record(text: str, span1: tuple[str, int], span2: tuple[str, int], **fields: Any) -> dict[str, Any]:
    target = {"span1_text": span1[0], "span1_index": span1[1], "span2_text": span2[0], "span2_index": span2[1]}
    return {"text": text, "target": target, "idx": 0, "label": "true", **fields}


@pytest.mark.parametrize(
    ("text", "span1", "span2", "marked"),
    [
        ("像树叶飘入，他走", ("树叶", 1), ("他", 6), "像_树叶_飘入，[他]走"),
        ("他看见树叶", ("树叶", 3), ("他", 0), "[他]看见_树叶_"),
        ("树叶他", ("树叶", 0), ("他", 2), "_树叶_[他]"),
        ("他树叶", ("树叶", 1), ("他", 0), "[他]_树叶_"),
        ("他说他走", ("说", 1), ("他", 2), "他_说_[他]走"),
        # A wrong index: the nearest occurrence is marked.
        ("他说完他走", ("说", 0), ("他", 4), "他_说_完[他]走"),
        # The phrase holds the pronoun.
        ("见他的书", ("他的书", 1), ("他", 1), "见_[他]的书_"),
    ],
)
def test_both_spans_are_marked_in_the_text(
    tmp_path: Path, text: str, span1: tuple[str, int], span2: tuple[str, int], marked: str
) -> None:
    [row] = values(CluewscMarked(), write_lines(tmp_path / "t", record(text, span1, span2)))
    assert row == {"text_a": marked, "label": "true"}


def test_a_span_that_is_not_in_the_text_is_a_bad_row(tmp_path: Path) -> None:
    missing, no_index, no_label = (
        record("他说", ("我", 0), ("他", 0)),
        *(record("他说", ("说", 1), ("他", 0)) for _ in "12"),
    )
    del no_index["target"]["span2_index"], no_label["label"]
    empty = record("他说", ("", 0), ("他", 0))
    bad = read(CluewscMarked(), write_lines(tmp_path / "t", missing, empty, no_index, {"text": "x"}))
    keys = ("span1_text", "span1_text", "'span2_index'", "'target'")
    assert [key in row.reason for key, row in zip(keys, bad, strict=True) if isinstance(row, BadRow)] == [True] * 4
    unlabelled = values(CluewscMarked(), write_lines(tmp_path / "u", no_label | {"id": 4}), labelled=False)
    assert unlabelled == [{"text_a": "[他]_说_", "id": 4}]


QUESTION = {"question": "什么?", "choice": ["一", "二"], "answer": "二"}
DOCUMENT = [["男：甲", "女：乙"], [QUESTION, QUESTION], "10-74"]


def test_a_row_is_a_question_ids_differ_between_files_and_other_documents_are_refused(tmp_path: Path) -> None:
    paths = [write_json(tmp_path / f"c3-{part}-dev.json", [DOCUMENT]) for part in "dm"]
    rows = values(C3(), *paths)
    # The answer is a text in the file, and an index in the row: a text such as "1" is no number of an option.
    question = {"context": "男：甲\n女：乙", "question": "什么?", "options": ["一", "二"], "answer": 1}
    assert rows[0] == {"id": "c3-d-dev/10-74-0", **question}
    assert len({row["id"] for row in rows}) == 4
    # The kind of the task refuses an answer that is no option.
    [other] = values(C3(), write_json(tmp_path / "o.json", [[["x"], [QUESTION | {"answer": "三"}], "1"]]))
    assert other["answer"] == "三"
    [unanswered] = read(C3(), write_json(tmp_path / "t.json", [[["x"], [{"question": "?", "choice": []}], "1"]]))
    assert isinstance(unanswered, BadRow)
    assert (str(unanswered.place).endswith("question 1"), "no 'answer'" in unanswered.reason) == (True, True)
    for documents in ([[["x"], []]], [[[1], [QUESTION], "1"]], [{}], 3):
        with pytest.raises(InputError, match=r"t\.json: not in the form of this layout"):
            read(C3(), write_json(tmp_path / "t.json", documents))


CANDIDATES = [f"成语{number}" for number in range(10)]
LINE = {"content": ["甲#idiom1#乙#idiom2#丙", "#idiom3#"], "candidates": CANDIDATES}


def test_each_blank_of_each_passage_is_a_row_of_one_group_and_has_an_answer(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "dev.json", LINE, {"content": ["#idiom4#"], "candidates": CANDIDATES[:7]})
    answers = write_json(tmp_path / "a.json", {f"#idiom{number}#": number for number in range(1, 5)})
    other = write_lines(tmp_path / "other.json", {"content": ["#idiom5#"], "candidates": CANDIDATES})
    more = write_json(tmp_path / "b.json", {"#idiom5#": 1})
    *rows, of_other = values(Chid(), path, answers, other, more)
    assert [(row["id"], row["answer"], row["group"]) for row in rows] == [
        ("#idiom1#", 1, f"{path}:1"),
        ("#idiom2#", 2, f"{path}:1"),
        ("#idiom3#", 3, f"{path}:1"),
        ("#idiom4#", 4, f"{path}:2"),
    ]
    assert of_other["group"] == f"{other}:1"
    assert [row["context"] for row in rows] == ["甲____乙……丙", "甲……乙____丙", "____", "____"]
    for row in rows:
        assert row["context"][slice(*row["blank"])] == BLANK
        assert "idiom" not in row["context"]
    assert [len(row["options"]) for row in rows] == [10, 10, 10, 7]
    path = write_lines(tmp_path / "dev.json", LINE, {"content": ["x"], "candidates": CANDIDATES}, {"content": "x"})
    answers = write_json(tmp_path / "a.json", {"#idiom1#": 0, "#idiom2#": 0, "#idiom9#": 0})
    one, two, *bad = read(Chid(), path, answers)
    assert isinstance(one, Row)
    assert isinstance(two, Row)
    assert [(str(row.place), row.reason[:16]) for row in bad if isinstance(row, BadRow)] == [
        (f"{path}:1, #idiom3#", "no answer for th"),
        (f"{path}:2", "a passage withou"),
        (f"{path}:3", "a passage withou"),
        (f"{answers}, #idiom9#", "an answer for a "),
    ]
    with pytest.raises(InputError, match=r"dev\.json: has no file of answers"):
        read(Chid(), path)
    with pytest.raises(InputError, match=r"b\.json: .*answers"):
        read(Chid(), path, write_json(tmp_path / "b.json", []))


def dureader(**fields: Any) -> dict[str, Any]:
    documents = [
        {"segmented_paragraphs": [["first", "one"]], "most_related_para": 0},
        {"segmented_paragraphs": [["no"], ["上海", "迪士尼", "可以", "带"]], "most_related_para": 1},
    ]
    return {"question_id": 7, "question": "?", "documents": documents, **fields}


def test_dureaders_answer_is_a_span_of_one_document_and_questions_without_are_omitted(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "t.json", dureader(answer_docs=[1], answer_spans=[[1, 2]]))
    [row] = values(DuReaderDocuments(), path)
    assert row["context"] == "上海迪士尼可以带"
    [answer] = row["answers"]
    assert answer == {"text": "迪士尼可以", "answer_start": 2}
    assert row["context"][answer["answer_start"] :].startswith(answer["text"])
    [test_row] = values(DuReaderDocuments(), path, labelled=False)
    assert test_row == {"id": "7", "question": "?", "context": "firstone"}
    answers = [([], []), ([1], [[1, 4]]), ([9], [[1, 4]])]
    lines = [dureader(answer_docs=docs, answer_spans=spans) for docs, spans in answers]
    omitted, *bad = read(DuReaderDocuments(), write_lines(tmp_path / "t.json", *lines, {"question_id": 1}))
    assert isinstance(omitted, OmittedRow)
    assert omitted.__traceback__ is omitted.__context__ is None  # its frames hold whole documents
    assert [isinstance(row, BadRow) for row in bad] == [True] * 3


IMDB = benchmarks.TextFolders(("neg", "pos"), clean="br_to_space")


def test_the_folder_is_the_label_and_begins_the_id(tmp_path: Path) -> None:
    write(tmp_path / "pos" / "0_9.txt", "good<br /><br/>film<BR>too")
    write(tmp_path / "neg" / "0_2.txt", "bad")
    write(tmp_path / "unsup" / "0_0.txt", "not read")
    write(tmp_path / "pos" / "urls.html", "not read")
    assert values(IMDB, tmp_path) == [
        {"id": "neg/0_2", "text_a": "bad", "label": "neg"},
        {"id": "pos/0_9", "text_a": "good  film too", "label": "pos"},
    ]
    write(tmp_path / "1.txt", "x")
    assert [row["id"] for row in values(IMDB, tmp_path, labelled=False)] == ["1"]


def test_a_missing_or_empty_class_is_refused_and_a_file_that_is_not_utf8_a_bad_row(tmp_path: Path) -> None:
    write(tmp_path / "neg" / "1.txt", b"x\n\xff")
    with pytest.raises(InputError, match="pos: not a folder of files"):
        read(IMDB, tmp_path)
    (tmp_path / "pos").mkdir()
    with pytest.raises(InputError, match=r"pos: no files \*\.txt"):
        read(IMDB, tmp_path)
    write(tmp_path / "pos" / "1.txt", "x")
    bad, good = read(IMDB, tmp_path)
    assert isinstance(bad, BadRow)
    assert str(bad.place) == f"{tmp_path / 'neg' / '1.txt'}:2"
    assert isinstance(good, Row)
