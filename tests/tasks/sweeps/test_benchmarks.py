"""The files of benchmarks, and the table with published scores."""

from __future__ import annotations

from pathlib import Path

import pytest

from reader.errors import InputError
from tasks.registry import TASKS
from tasks.sweeps.benchmarks import BENCHMARKS, read_benchmark, table
from tests.support.task_files import write


def test_published_scores_are_further_columns(tmp_path: Path) -> None:
    path = write(
        tmp_path / "own.yaml",
        "title: Two tasks\ntasks: [mrpc, cola]\nreported:\n"
        "- {name: Theirs, source: Their paper, scores: {mrpc: {dev.accuracy: 90.7}, cola: {dev.matthews: 68.6}}}\n",
    )
    lines = table(read_benchmark(str(path)), []).splitlines()
    assert lines[2] == "| task | split | metric | seeds | median | worst - best | Theirs |"
    assert lines[4:6] == [
        "| MRPC | dev | accuracy | 0 | - | - | 90.7 |",
        "| CoLA | dev | matthews | 0 | - | - | 68.6 |",
    ]
    assert lines[-1] == "Theirs: Their paper."


def test_the_benchmarks_of_the_project_have_tasks_of_the_registry() -> None:
    found = {path.stem: read_benchmark(path.stem).tasks for path in BENCHMARKS.glob("*.yaml")}
    languages = {name: {TASKS[task].language for task in tasks} for name, tasks in found.items()}
    assert languages == {"english": {"en"}, "chinese": {"zh"}, "clue": {"zh"}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tasks: []", "tasks: expected a list"),
        ("tasks: [[mrpc]]", "tasks: expected a list of names"),
        ("tasks: [mrcp]", "no task 'mrcp'; did you mean mrpc"),
        ("tasks: [mrpc, qnli, mrpc]", "tasks: mrpc is there twice"),
        ("task: [mrpc]", "task: is not a key of a benchmark (title, tasks, reported); did you mean tasks"),
        ("tasks: [mrpc]\nreported: [{name: x}]", "reported: expected a list of columns"),
        (
            "tasks: [mrpc]\nreported: [{name: x, source: y, scores: {mrpc: {accuracy: 3}}}]",
            "reported.scores.mrpc: accuracy is none of dev.accuracy, dev.f1",
        ),
        (
            "tasks: [mrpc]\nreported: [{name: x, source: y, scores: {mrpc: {dev.f1: 90 %}}}]",
            "reported.scores.mrpc: dev.f1: expected a number, found '90 %'",
        ),
    ],
)
def test_a_file_that_is_no_benchmark_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = write(tmp_path / "own.yaml", text)
    with pytest.raises(InputError) as error:
        read_benchmark(str(path))
    assert str(error.value).startswith(f"{path}: {message}")
