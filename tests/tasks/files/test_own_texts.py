"""Texts of a user become examples: read like the task's own files without labels, as lines, or as JSON lines."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reader.errors import InputError
from tasks.files.own_texts import Form, load_texts
from tasks.kinds.base import Example
from tasks.kinds.task import Task
from tasks.layouts.lines import JsonLines
from tasks.layouts.rows import Layout
from tasks.layouts.tables import Csv, Tsv
from tasks.registry import TASKS
from tests.support.task_files import files, write, write_lines


def of_layout(name: str, layout: Layout) -> Task:
    """Return a task of the registry with another layout."""
    return replace(TASKS[name], layout=layout, splits={"train": files("train")})


def rows(task: Task, path: Path, form: Form = "task") -> list[tuple[Any, ...]]:
    """Return ID and texts, or tokens, of each example."""
    names = ("id", "text_a", "text_b", "context", "question", "options", "tokens")

    def values(example: Example) -> tuple[Any, ...]:
        return tuple(value for name in names if (value := getattr(example, name, None)) is not None)

    return [values(example) for example in load_texts(task, path, form, "error").examples]


def refusal(task: Task, path: Path, form: Form = "task") -> str:
    with pytest.raises(InputError) as error:
        load_texts(task, path, form, "error")
    return str(error.value)


STARS = {"text_a": "review", "label": "stars"}
PAIR = [("0", "it ran", "a cat"), ("1", "the", "mat")]
TEXT = [("0", "it, ran"), ("1", "the")]


SQUAD = {"data": [{"paragraphs": [{"context": "it ran", "qas": [{"id": "q7", "question": "what"}]}]}]}
TARGET = {"span1_text": "树叶", "span1_index": 1, "span2_text": "他", "span2_index": 6}
IDIOMS = ["画龙点睛", "守株待兔"]


C3 = [[["甲"], [{"question": "?", "choice": ["a", "b"]}], "d"]]
CHID = {"content": ["甲#idiom1#乙"], "candidates": IDIOMS}


@pytest.mark.parametrize(
    ("task", "content", "expected"),
    [
        ("rte", "index\tsentence1\tsentence2\tlabel\n7\tit ran\ta cat\tx\n8\tthe\tmat\ty\n", PAIR),
        ("cola", "index\tsentence\n4\tit, ran\n6\tthe\n", [("4", "it, ran"), ("6", "the")]),
        ("lcqmc", "text_a\ttext_b\nit ran\ta cat\nthe\tmat\n", PAIR),
        ("lcqmc", "it ran\ta cat\nthe\tmat\n", PAIR),
        ("ag_news", '"9","it","#39;s"\n', [("0", "it's")]),
        ("csl", '{"id": 5, "keyword": ["a", "b"], "abst": "c"}\n', [("5", "a b", "c")]),
        ("cluewsc2020", json.dumps({"text": "像树叶飘入，他走", "target": TARGET}), [("0", "像_树叶_飘入，[他]走")]),
        ("cmrc2018", json.dumps(SQUAD), [("q7", "it ran", "what")]),
        ("c3", json.dumps(C3), [("own/d-0", "甲", "?", ("a", "b"))]),
        ("chid", json.dumps(CHID), [("#idiom1#", "甲____乙", "", tuple(IDIOMS))]),
        ("conll2003", "it\nran\n\nthe\n", [("0", ("it", "ran")), ("1", ("the",))]),
        ("conll2003", "it X O\nran Y B-PER\n", [("0", ("it", "ran"))]),
        ("msra_ner", "text_a\n上\x02海\n在\n", [("0", ("上", "海")), ("1", ("在",))]),
        ("cluener", '{"text": "上海"}\n', [("0", ("上", "海"))]),
    ],
)
def test_official_files_need_no_labels(
    task: str, content: str, expected: list[tuple[Any, ...]], tmp_path: Path
) -> None:
    assert rows(TASKS[task], write(tmp_path / "own", content)) == expected


def test_folders_of_texts_are_read_as_the_tasks_own(tmp_path: Path) -> None:
    write(tmp_path / "imdb/7_0.txt", "it<br />ran")
    assert rows(TASKS["imdb"], tmp_path / "imdb") == [("7_0", "it ran")]
    questions = {"article": "it", "questions": ["what"], "options": [["a", "b"]]}
    write(tmp_path / "race/1.txt", json.dumps(questions))
    assert rows(TASKS["race"], tmp_path / "race") == [("race/1-0", "it", "what", ("a", "b"))]
    path = write(tmp_path / "own.txt", "it ran\n")
    for task in ("imdb", "race"):
        assert refusal(TASKS[task], path).startswith(f"{path}: not a folder of files *.txt")


@pytest.mark.parametrize("key", ["id", "key"])
def test_a_column_or_key_id_or_that_of_the_task_has_the_ids(key: str, tmp_path: Path) -> None:
    for layout, content in (
        (Tsv(STARS), f"review\t{key}\nit\tr1\n"),
        (Csv(STARS), f"review,{key}\nit,r1\n"),
        (JsonLines(STARS), f'{{"{key}": "r1", "review": "it"}}\n'),
        (Tsv(STARS, header="no", names=(key, "review")), "r1\tit\n"),
    ):
        task = of_layout("sst2", layout if key == "id" else replace(layout, columns={**STARS, "id": key}))
        assert rows(task, write(tmp_path / "own", content)) == [("r1", "it")]


@pytest.mark.parametrize(
    ("task", "content", "message"),
    [
        # Else the first text would be a header, or the header a text.
        (of_layout("sst2", Csv(STARS)), "it ran\n", ":1: no column 'review'"),
        (of_layout("sst2", Csv({"label": 1, "text_a": 2}, header="no")), "it\n", ":1: too few fields"),
        (of_layout("sst2", JsonLines(STARS)), '{"reviews": "it"}\n', ":1: no key 'review'"),
        (TASKS["rte"], "sentence1\tlabel\nit\tx\n", ":1: no column 'sentence2'"),
        # Rows of the official files that baselines leave out; here each has an answer.
        (TASKS["qqp"], "question1\tquestion2\na b\tc d\nshort\n", ":3: too few fields"),
        (TASKS["msra_ner"], "text_a\n好\n上海\n", ":3: no '\\x02' between tokens"),
        (of_layout("conll2003", Csv({"tokens": 1}, "no", list_separator="|")), "it\nit ran\n", ":2: no '|' between"),
        (TASKS["squad1"], '{"context": "it", "question": "what"}\n', ": no 'data'"),
    ],
)
def test_what_does_not_fit_is_refused(task: Task, content: str, message: str, tmp_path: Path) -> None:
    path = write(tmp_path / "own", content)
    assert refusal(task, path).startswith(f"{path}{message}")


def test_missing_files_and_other_encodings_are_named_and_single_tokens_read(tmp_path: Path) -> None:
    assert refusal(TASKS["rte"], tmp_path / "none.tsv") == f"{tmp_path / 'none.tsv'}: no such file or folder"
    path = write(tmp_path / "own.csv", "review\nit\n".encode("utf-16"))
    for layout in (Csv(STARS), Tsv(STARS)):
        assert "looks like UTF-16" in refusal(of_layout("sst2", layout), path)
    assert rows(TASKS["msra_ner"], write(tmp_path / "own.tsv", "text_a\n好\n")) == [("0", ("好",))]
    words = replace(TASKS["conll2003"], layout=Tsv({"tokens": "words"}, list_separator=" "))
    assert rows(words, write(tmp_path / "own.tsv", "words\nHello\n")) == [("0", ("Hello",))]


@pytest.mark.parametrize(
    ("task", "lines", "expected"),
    [
        ("sst2", "it, ran\nthe\n\n\n", TEXT),
        ("rte", "it ran\ta cat\nthe\tmat\n", PAIR),
        ("imdb", "it<br />ran &lt;\n", [("0", "it ran &lt;")]),
        ("ag_news", "it<br />ran &lt;\n", [("0", "it<br />ran <")]),
        ("squad1", "it ran\twhat\n", [("0", "it ran", "what")]),
        ("conll2003", "it (ran).\n", [("0", ("it", "(", "ran", ")", "."))]),
        ("msra_ner", "上 海\n", [("0", ("上", " ", "海"))]),
    ],
)
def test_lines_have_texts_and_no_header(task: str, lines: str, expected: list[tuple[Any, ...]], tmp_path: Path) -> None:
    assert rows(TASKS[task], write(tmp_path / "own.tsv", lines), "lines") == expected


def test_a_pipe_is_read_once() -> None:
    end, other_end = os.pipe()
    os.write(other_end, b"it, ran\nthe\n")
    os.close(other_end)
    try:
        assert rows(TASKS["sst2"], Path(f"/dev/fd/{end}"), "lines") == TEXT
    finally:
        os.close(end)


@pytest.mark.parametrize(
    ("task", "objects", "expected"),
    [
        ("rte", [{"text_b": "a cat", "text_a": "it ran", "more": 1}, {"text_a": "the", "text_b": "mat"}], PAIR),
        # Gold values are not read.
        ("sst2", [{"id": "r1", "text_a": "it"}, {"text_a": "ran", "label": 7}], [("r1", "it"), ("1", "ran")]),
        ("imdb", [{"text_a": "it<br />ran"}], [("0", "it ran")]),
        ("race", [{"context": "it", "options": ["a", "b"], "question": "?"}], [("0", "it", "?", ("a", "b"))]),
        # Texts and tokens in one file.
        ("conll2003", [{"text": "it ."}, {"tokens": ["it", "."], "tags": 0}], [("0", ("it", ".")), ("1", ("it", "."))]),
        ("msra_ner", [{"tokens": ["上", "海"]}, {"text": "上海"}], [("0", ("上", "海")), ("1", ("上", "海"))]),
    ],
)
def test_json_lines_have_values_by_name(
    task: str, objects: list[dict[str, Any]], expected: list[tuple[Any, ...]], tmp_path: Path
) -> None:
    assert rows(TASKS[task], write_lines(tmp_path / "own.json", *objects), "json") == expected


def test_english_characters_are_tokens_if_they_were_in_training(tmp_path: Path) -> None:
    task = replace(TASKS["cluener"], language="en")
    forms: dict[Form, str] = {"lines": "it\n", "json": '{"text": "it"}\n', "task": '{"text": "it"}\n'}
    for form, content in forms.items():
        assert rows(task, write(tmp_path / "own", content), form) == [("0", ("i", "t"))]


@pytest.mark.parametrize(
    ("task", "form", "content", "message"),
    [
        ("sst2", "lines", "it\tran\n", "{path}:1: 2 fields instead of 1"),
        ("rte", "lines", "it\n", "{path}:1: too few fields"),
        ("sst2", "json", '{"sentence": "it"}\n', "{path}:1: no key 'text_a'"),
        ("sst2", "json", '{"text_a": "it", "text_b": "a"}\n', "{path}:1: the rows of this task have no text_b"),
        ("race", "lines", "it\n", "--layout: "),
        ("conll2003", "json", '{"text": "a", "tokens": ["a"]}\n', "{path}:1: expected either the key 'tokens'"),
        ("conll2003", "json", "{}\n", "{path}:1: expected either the key 'tokens'"),
        ("rte", "json", '{"text_a": "it", "text_b": ""}\n', "{path}:1: text_b is empty"),
        # Its own files may have empty texts.
        ("qqp", "json", '{"text_a": " ", "text_b": "it"}\n', "{path}:1: text_a is empty"),
        ("squad2", "json", '{"context": "it", "question": "\u200b"}\n', "{path}:1: question is empty"),
        ("conll2003", "json", '{"text": "\u200b"}\n', "{path}:1: text is empty"),
        ("race", "json", '{"context": "it", "question": "_", "options": ["a", ""]}\n', "{path}:1: options[1] is empty"),
        ("chid", "json", "{}\n", "--layout: json cannot"),
        ("cluewsc2020", "lines", "a\n", "--layout: lines cannot"),
    ],
)
def test_lines_that_do_not_fit_are_refused(task: str, form: Form, content: str, message: str, tmp_path: Path) -> None:
    path = write(tmp_path / "own", content)
    assert refusal(TASKS[task], path, form).startswith(message.format(path=path))


@pytest.mark.parametrize(
    ("task", "form", "content"),
    [
        ("sst2", "lines", "it\n{}\nran\n\n\n"),
        ("conll2003", "lines", "it\n{}\nran\n\n"),
        ("sst2", "task", "sentence\n{}\nran\n\n"),
    ],
)
def test_a_blank_line_is_a_bad_row_and_counts(task: str, form: Form, content: str, tmp_path: Path) -> None:
    for blank in ("", " ", "\u3000"):
        path = write(tmp_path / "own", content.format(blank))
        assert refusal(TASKS[task], path, form).startswith(f"{path}:2: a blank line")
        found = load_texts(TASKS[task], path, form, "skip")
        assert [example.id for example in found.examples] == (["1"] if form == "task" else ["0", "2"])
        assert len(found.report.bad) == 1
