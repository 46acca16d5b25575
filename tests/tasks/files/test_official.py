"""The official files of a task: where they are found, and that every row is accounted for."""

from __future__ import annotations

import dataclasses
import importlib
from pathlib import Path
from typing import Any

import pytest

from reader.errors import InputError
from tasks.files.official import with_labels
from tasks.kinds.task import Task
from tasks.layouts.benchmarks import Squad
from tasks.layouts.tables import Tsv
from tests.support.commands import call
from tests.support.task_files import files, load, write, write_json

COMMANDS = {
    "tasks.check_files": ["cola"],
    "tasks.predict": ["run", "--output", "out"],
    "tasks.score": ["cola", "predictions.tsv"],
    "tasks.sweep": ["cola", "model", "--output", "out"],
}
MISSING = "--data"


@pytest.mark.parametrize("module", COMMANDS)
def test_the_variable_stands_for_a_missing_option(module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    main = importlib.import_module(module).main
    monkeypatch.chdir(tmp_path)
    without = call(main, *COMMANDS[module])
    assert (without.returncode, MISSING in without.stderr) == (2, True), without.stderr
    monkeypatch.setenv("DATA", str(tmp_path))
    given = call(main, *COMMANDS[module])
    assert (given.returncode, MISSING in given.stderr) == (2, False), given.stderr


TASK = Task(
    name="pairs",
    title="Pairs",
    language="en",
    kind="classification",
    metric="accuracy",
    layout=Tsv({"text_a": "a", "label": "label"}),
    splits={
        "train": files("train.tsv", ("one.tsv", "two.tsv")),
        "dev": files("dev.tsv"),
        "test": files("test.tsv", labelled=False),
    },
    folders=("Pairs", "glue/Pairs"),
    labels=("0", "1"),
    omitted_labels=("-",),
)
OPEN = dataclasses.replace(TASK, labels=None, omitted_labels=())
GOOD = "a\tlabel\nx\t1\ny\t0\n"
BAD = "a\tlabel\nx\t1\ny\t2\n\t0\nz\nw\t-\nv\t0\n"


def test_the_first_bad_row_stops_or_bad_rows_are_skipped_counted_and_listed(tmp_path: Path) -> None:
    path = write(tmp_path / "train.tsv", BAD)
    with pytest.raises(InputError, match=f"^{path}:3: the label '2' .* --on_bad_row skip$"):
        load(TASK, tmp_path)
    loaded = load(TASK, tmp_path, on_bad_row="skip")
    # A row without ID is named by its number in the file, whatever happened to earlier rows.
    assert [example.id for example in loaded.examples] == ["0", "5"]
    assert loaded.report.rows == 6
    assert loaded.report.lines(limit=2) == [
        f"pairs train: rows 6, examples 2 ({path})",
        "  left out 1: no gold label (-)",
        "  bad rows skipped 3:",
        f"    {path}:3: the label '2' is none of the task's: 0, 1",
        f"    {path}:4: text_a is empty",
        "    and 1 more",
    ]
    assert loaded.report.lines()[-1] == f"    {path}:5: too few fields: 1 instead of at least 2"


def test_a_file_without_examples_is_refused_and_missing_files_are_named(tmp_path: Path) -> None:
    write(tmp_path / "train.tsv", "a\tlabel\nx\t-\n")
    with pytest.raises(InputError, match=r"train.tsv: no example of Pairs in 1 row$"):
        load(TASK, tmp_path)
    write(tmp_path / "train.tsv", "a\tlabel\nx\t9\n")
    with pytest.raises(InputError, match=r"in 1 row; the first one is at .*train.tsv:2: the label '9'"):
        load(TASK, tmp_path, on_bad_row="skip")
    (tmp_path / "train.tsv").rename(tmp_path / "one.tsv")
    with pytest.raises(InputError, match=f"^{tmp_path}: no files of the split 'train'") as error:
        load(TASK, tmp_path)
    for looked_for in ("train.tsv, or one.tsv and two.tsv", "Pairs, glue/Pairs"):
        assert looked_for in str(error.value)
    with pytest.raises(InputError, match=f"{tmp_path / 'nowhere'}: no such folder"):
        load(TASK, tmp_path / "nowhere")


def test_sources_are_tried_in_their_order_and_labels_of_the_training_file_hold_for_the_others(tmp_path: Path) -> None:
    write(tmp_path / "one.tsv", GOOD)
    write(tmp_path / "two.tsv", GOOD)
    assert [example.id for example in load(TASK, tmp_path).examples] == ["0", "1", "2", "3"]
    write(tmp_path / "train.tsv", GOOD)
    assert len(load(TASK, tmp_path).examples) == 2
    write(tmp_path / "train.tsv", "a\tlabel\nx\t10\ny\t9\nz\t9\n")
    assert with_labels(OPEN, tmp_path).labels == ("9", "10")
    assert with_labels(TASK, tmp_path) is TASK
    write(tmp_path / "dev.tsv", "a\tlabel\nx\t10\ny\t8\n")
    with pytest.raises(InputError, match=r"dev.tsv:3: the label '8' is none of those of the training file: 9, 10"):
        load(with_labels(OPEN, tmp_path), tmp_path, "dev")
    assert len(load(with_labels(OPEN, tmp_path), tmp_path, "dev", on_bad_row="skip").report.bad) == 1
    write(tmp_path / "train.tsv", "a\tlabel\n" + "".join(f"x\t{label}\n" for label in ("001", "1", "2", "01")))
    assert with_labels(OPEN, tmp_path).labels == ("001", "01", "1", "2")


def question(row_id: str, answer: str) -> dict[str, Any]:
    return {"id": row_id, "question": "?", "answers": [{"text": answer, "answer_start": 0}]}


def test_ids_are_unique_where_predictions_are_scored(tmp_path: Path) -> None:
    task = dataclasses.replace(TASK, kind="span", metric="squad_v1", layout=Squad(), labels=None)
    paragraph = {"context": "a b", "qas": [question("q", "a"), question("q", "b")]}
    for name in ("train.tsv", "dev.tsv"):
        write_json(tmp_path / name, {"data": [{"paragraphs": [paragraph]}]})
    assert len(load(task, tmp_path).examples) == 2
    # The second answer is not where the file says.
    assert load(task, tmp_path).report.lines()[1:] == ["  noted 1: answers at another position than answer_start"]
    with pytest.raises(InputError, match=r"qas\[1\] \(id q\): the id 'q' is not unique; it is also at .*qas\[0\]"):
        load(task, tmp_path, "dev")
