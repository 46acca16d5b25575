"""The files of benchmarks."""

from __future__ import annotations

from pathlib import Path

import pytest

from reader.errors import InputError
from tasks.metrics.catalog import METRICS
from tasks.registry import TASKS
from tasks.sweeps.plan import BENCHMARKS, read_benchmark
from tests.support.task_files import write


def test_the_benchmarks_of_the_project_have_tasks_and_scores_of_the_registry_and_others_are_refused(
    tmp_path: Path,
) -> None:
    languages = {}
    for path in BENCHMARKS.glob("*.yaml"):
        found = read_benchmark(path.stem)
        languages[path.stem] = {TASKS[task].language for task in found["tasks"]}
        for column in found["reported"]:
            for name, scores in column["scores"].items():
                task = TASKS[name]
                metrics = METRICS[task.metric].reported
                assert scores.keys() <= {f"{split}.{each}" for split in task.evaluation_splits for each in metrics}
                assert {type(score) for score in scores.values()} <= {int, float}
    assert languages == {"english": {"en"}, "chinese": {"zh"}, "clue": {"zh"}}
    assert read_benchmark("mrpc") is None
    for text, message in (
        ("tasks: 5", "tasks: "),
        ("tasks: [[mrpc]]", r"no task .*mrpc"),
        ("tasks: [mrcp]", "no task 'mrcp'"),
        ("tasks: [mrpc]\ntitel: x", "titel: .*did you mean title"),
        ("tasks: [mrpc]\nreported: [{name: x}]", "reported: "),
    ):
        path = write(tmp_path / "own.yaml", text)
        with pytest.raises(InputError, match=f"^{path}: {message}"):
            read_benchmark(str(path))
