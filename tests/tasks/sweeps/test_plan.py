"""The files of benchmarks."""

from __future__ import annotations

from tasks.metrics.catalog import METRICS
from tasks.registry import TASKS
from tasks.sweeps.plan import BENCHMARKS, read_benchmark


def test_the_benchmarks_have_tasks_and_scores_of_the_registry() -> None:
    languages = {}
    for path in BENCHMARKS.glob("*.yaml"):
        found = read_benchmark(path.stem)
        languages[path.stem] = {TASKS[task].language for task in found["tasks"]}
        for column in found.get("reported", []):
            for name, scores in column["scores"].items():
                task = TASKS[name]
                metrics = METRICS[task.metric].reported
                assert scores.keys() <= {f"{split}.{each}" for split in task.evaluation_splits for each in metrics}
                assert {type(score) for score in scores.values()} <= {int, float}
    assert languages == {"english": {"en"}, "chinese": {"zh"}, "clue": {"zh"}}
    assert read_benchmark("mrpc") is None
