"""Texts of a user become examples: names of columns and keys, tables without header, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reader.errors import InputError
from tasks.data.examples import ClassificationExample, MultipleChoiceExample, TaggingExample
from tasks.layouts.dureader_documents import DuReaderDocuments
from tasks.layouts.json_lines import JsonLines
from tasks.layouts.rows import Layout
from tasks.layouts.tsv import Tsv
from tasks.prediction.own_texts import load_texts
from tasks.registry import TASKS
from tasks.registry.task import Task, files
from tests.support.task_files import load, write, write_json, write_lines

ROWS = [("it ran", "a cat"), ("the", "mat")]


def texts(task: str, path: Path) -> list[tuple[str, str, str | None]]:
    """Return ID, first and second text of each row."""
    examples = load_texts(TASKS[task], path, "stop").examples
    return [(e.id, e.text_a, e.text_b) for e in examples if isinstance(e, ClassificationExample)]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("plain.tsv", "it ran\ta cat\nthe\tmat\n"),
        ("named.txt", "text_b\ttext_a\na cat\tit ran\nmat\tthe\n"),
        ("dev.tsv", "index\tsentence1\tsentence2\tlabel\n7\tit ran\ta cat\tx\n8\tthe\tmat\ty\n"),
        ("keys.jsonl", '{"text_b": "a cat", "text_a": "it ran"}\n{"text_b": "mat", "text_a": "the"}\n'),
        ("own.jsonl", '{"sentence1": "it ran", "sentence2": "a cat"}\n{"sentence1": "the", "sentence2": "mat"}\n'),
    ],
)
def test_texts_may_be_called_as_in_the_tasks_own_files(name: str, text: str, tmp_path: Path) -> None:
    expected = [(str(index), *row) for index, row in enumerate(ROWS)]
    assert texts("rte", write(tmp_path / name, text)) == expected


def test_a_task_of_single_texts_reads_no_second_text(tmp_path: Path) -> None:
    path = write(tmp_path / "own.jsonl", '{"sentence": "it ran", "text_b": "5", "id": "r1"}\n')
    assert texts("sst2", path) == [("r1", "it ran", None)]
    assert texts("sst2", write(tmp_path / "dev.tsv", "label\tsentence\n5\tit ran\n")) == [("0", "it ran", None)]


@pytest.mark.parametrize(
    ("task", "text", "message"),
    [
        # Else the header would be a text, and the labels second texts.
        ("sst2", "review\tstars\nit ran\t5\n", "no column 'text_a' or 'sentence'; give only text_a, or name the"),
        ("rte", "it ran\n", "no column 'text_b' or 'sentence2'; give only text_a, text_b, with tabs between them, or"),
        ("rte", "text_a\tlabel\nit\tx\n", "no column 'text_b' or 'sentence2'; give only"),
        ("squad1", "context\nit ran\n", "no column 'question'; give only context, question, with tabs"),
    ],
)
def test_a_table_without_the_columns_is_refused(task: str, text: str, message: str, tmp_path: Path) -> None:
    path = write(tmp_path / "own.tsv", text)
    with pytest.raises(InputError) as error:
        load_texts(TASKS[task], path, "stop")
    assert str(error.value).startswith(f"{path}:1: {message}")


def of_layout(name: str, layout: Layout) -> Task:
    """Return a task of the registry with another layout."""
    return replace(TASKS[name], layout=layout, splits={"train": files("train")})


def refusal(task: Task, path: Path) -> str:
    with pytest.raises(InputError) as error:
        load_texts(task, path, "error")
    return str(error.value)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("plain.txt", "it<br />ran &lt;\n"),
        ("named.tsv", "id\ttext_a\n0\tit<br />ran &lt;\n"),
        ("keys.jsonl", '{"text_a": "it<br />ran &lt;"}\n'),
    ],
)
def test_texts_are_cleaned_as_in_training(name: str, text: str, tmp_path: Path) -> None:
    path = write(tmp_path / name, text)
    assert texts("imdb", path) == [("0", "it ran &lt;", None)]
    assert texts("ag_news", path) == [("0", "it<br />ran <", None)]
    assert texts("sst2", path) == [("0", "it<br />ran &lt;", None)]


@pytest.mark.parametrize("layout", [Tsv({"text_a": "t", "label": "l"}), JsonLines({"text_a": "t"})])
def test_texts_under_the_tasks_own_names_are_cleaned(layout: Tsv | JsonLines, tmp_path: Path) -> None:
    task = of_layout("sst2", replace(layout, clean="br_to_space"))
    for path in (write(tmp_path / "a.tsv", "t\nit<br>ran\n"), write(tmp_path / "a.jsonl", '{"t": "it<br>ran"}\n')):
        [example] = load_texts(task, path, "error").examples
        assert isinstance(example, ClassificationExample)
        assert example.text_a == "it ran"
    path = write(tmp_path / "b.jsonl", '{"t": 3}\n')
    assert refusal(task, path).startswith(f"{path}:1: text_a is not a text but 3")


def test_columns_have_the_meaning_that_they_have_in_the_tasks_own_files(tmp_path: Path) -> None:
    columns = {"text_a": "text_b", "text_b": "text_a", "label": "label"}
    for layout in (Tsv(columns), JsonLines(columns)):
        task = of_layout("rte", layout)
        table = write(tmp_path / "dev.tsv", "text_a\ttext_b\nsecond\tfirst\n")
        lines = write_lines(tmp_path / "dev.jsonl", {"text_a": "second", "text_b": "first"})
        for path in (lines, *([table] if isinstance(layout, Tsv) else [])):
            [example] = load_texts(task, path, "error").examples
            assert isinstance(example, ClassificationExample)
            assert (example.text_a, example.text_b) == ("first", "second")


def test_a_task_of_texts_in_folders_has_single_texts(tmp_path: Path) -> None:
    path = write(tmp_path / "own.tsv", "it ran\ta cat\n")
    assert "no column 'text_a'; give only text_a, or name the columns" in refusal(TASKS["imdb"], path)


IDIOMS = ["画龙点睛", "守株待兔", "对牛弹琴"]


def test_blanks_of_idioms_are_read_from_the_tasks_own_objects(tmp_path: Path) -> None:
    lines = [{"content": ["甲#idiom1#乙#idiom2#丙"], "candidates": IDIOMS}]
    own = load_texts(TASKS["chid"], write_lines(tmp_path / "own.jsonl", *lines), "error").examples
    write_json(tmp_path / "train_answer.json", {"#idiom1#": 0, "#idiom2#": 2})
    path = write_lines(tmp_path / "train.json", *lines)
    trained = load(TASKS["chid"], tmp_path).examples
    assert [replace(example, answer=None) for example in trained if isinstance(example, MultipleChoiceExample)] == [
        replace(example, place=example.place._replace(file=path)) for example in own
    ]
    assert [example.id for example in own] == ["#idiom1#", "#idiom2#"]


def test_the_blank_of_an_own_context_is_marked(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "own.jsonl", {"context": "他____了……", "options": IDIOMS, "question": "?"})
    [example] = load_texts(TASKS["chid"], path, "error").examples
    assert isinstance(example, MultipleChoiceExample)
    assert (example.blank, example.question, example.group) == ((1, 5), "", None)
    [example] = load_texts(TASKS["race"], path, "error").examples
    assert isinstance(example, MultipleChoiceExample)
    assert (example.blank, example.question) == (None, "?")


@pytest.mark.parametrize("context", ["他了", "他____了____", "他_____了", "他____了#idiom000001#", "#idiom000001#", 3])
def test_a_context_without_a_single_marked_blank_is_refused(context: Any, tmp_path: Path) -> None:
    good = {"context": "____", "options": IDIOMS}
    path = write_lines(tmp_path / "own.jsonl", good, {"context": context, "options": IDIOMS})
    message = f"{path}:2: the context must have one blank, marked '____'; write '……' for others;"
    assert refusal(TASKS["chid"], path).startswith(message)
    assert len(load_texts(TASKS["chid"], path, "skip").examples) == 1
    path = write_lines(tmp_path / "no.jsonl", {"options": IDIOMS})
    message = "no key 'context' (or 'content' and 'candidates') in the object"
    assert refusal(TASKS["chid"], path).startswith(f"{path}:1: {message}")


def test_pronouns_are_marked_or_read_from_the_tasks_own_objects(tmp_path: Path) -> None:
    target = {"span1_text": "树叶", "span1_index": 1, "span2_text": "他", "span2_index": 6}
    own = write_lines(tmp_path / "own.jsonl", {"text": "像树叶飘入，他走", "target": target})
    marked = write_lines(tmp_path / "marked.jsonl", {"text_a": "像_树叶_飘入，[他]走"})
    table = write(tmp_path / "marked.tsv", "像_树叶_飘入，[他]走\n")
    for path in (own, marked, table):
        assert texts("cluewsc2020", path) == [("0", "像_树叶_飘入，[他]走", None)]


@pytest.mark.parametrize(
    "text", ["像树叶飘入，他走", "像_树叶_飘入，他走", "像树叶飘入，[他]走", "像__飘入，[他]走", ""]
)
def test_a_text_without_marked_pronoun_is_refused(text: str, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "own.jsonl", {"text_a": "_树叶_[他]"}, {"text_a": text})
    message = f"{path}:2: text_a must have its noun phrase and its pronoun marked as '_phrase_' and '[pronoun]';"
    assert refusal(TASKS["cluewsc2020"], path).startswith(message)


def test_objects_of_several_documents_are_read_as_the_tasks_own(tmp_path: Path) -> None:
    document = {"segmented_paragraphs": [["上", "海"]], "most_related_para": 0}
    path = write_lines(tmp_path / "own.jsonl", {"question_id": 7, "question": "哪", "documents": [document]})
    [example] = load_texts(of_layout("dureader", DuReaderDocuments()), path, "error").examples
    assert (example.id, getattr(example, "context", None)) == ("7", "上海")


def tokens(task: Task, path: Path) -> list[tuple[str, ...]]:
    examples = load_texts(task, path, "error").examples
    return [example.tokens for example in examples if isinstance(example, TaggingExample)]


def test_a_table_may_have_tokens_as_the_tasks_own_files(tmp_path: Path) -> None:
    path = write(tmp_path / "dev.tsv", "text_a\tlabel\n上\x02海\tB-LOC\x02I-LOC\n在\tO\n")
    assert tokens(TASKS["msra_ner"], path) == [("上", "海"), ("在",)]
    assert tokens(TASKS["msra_ner"], write(tmp_path / "own.tsv", "text\n上海\n")) == [("上", "海")]
    path = write(tmp_path / "texts.tsv", "text_a\n上海\n")
    assert "no line has '\\x02' between tokens; leave out the first line if" in refusal(TASKS["msra_ner"], path)


def test_tokens_may_be_called_text_in_the_tasks_own_files(tmp_path: Path) -> None:
    columns = {"tokens": "text", "tags": "tags"}
    task = of_layout("conll2003", JsonLines(columns))
    assert tokens(task, write_lines(tmp_path / "a.jsonl", {"text": ["it", "ran."]})) == [("it", "ran.")]
    assert tokens(task, write_lines(tmp_path / "b.jsonl", {"text": "it ran."})) == [("it", "ran", ".")]
    task = of_layout("conll2003", Tsv(columns, list_separator=" "))
    assert tokens(task, write(tmp_path / "a.tsv", "text\tnumber\nit ran.\t5\n")) == [("it", "ran.")]


def test_a_table_may_have_options_as_the_tasks_own_files(tmp_path: Path) -> None:
    columns = {"context": "c", "options": ("a", "b"), "answer": "right"}
    path = write(tmp_path / "dev.tsv", "c\ta\tb\nit\tran\tsat\n")
    [example] = load_texts(of_layout("race", Tsv(columns)), path, "error").examples
    assert isinstance(example, MultipleChoiceExample)
    assert (example.context, example.options) == ("it", ("ran", "sat"))
    assert "options do not fit into a table" in refusal(TASKS["race"], path)


def test_an_empty_line_is_an_empty_text_of_tagging(tmp_path: Path) -> None:
    path = write(tmp_path / "own.txt", "it ran\n\nit sat\n")
    assert refusal(TASKS["conll2003"], path).startswith(f"{path}:2: the text is empty;")
