"""Texts of a user become examples: names of columns and keys, tables without header, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from reader.errors import InputError
from tasks.data.examples import ClassificationExample
from tasks.prediction.own_texts import load_texts
from tasks.registry import TASKS
from tests.support.task_files import write

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
