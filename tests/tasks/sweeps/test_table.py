"""The table of a sweep: medians over the seeds, the best combination, published scores, and means over tasks."""

from __future__ import annotations

from typing import Any

from tasks.sweeps.table import table

RATE = "optimizer.learning_rate"


def record(task: str, rate: str, seed: int, score: float, **more: float) -> dict[str, Any]:
    known = {"run": f"{task},{rate},{seed}", "task": task, "varied": {RATE: rate}, "seed": seed}
    result = {"score": score, "dev.accuracy": score, **more, "steps": 20}
    return {**known, "metric": {"name": "accuracy_f1", "chooses": "accuracy"}, "result": result}


def mrpc() -> list[dict[str, Any]]:
    scores = {"0.001": (70, 90, 71), "0.002": (80, 60, 75)}
    return [record("mrpc", rate, seed, each) for rate, all_ in scores.items() for seed, each in enumerate(all_, 1)]


def test_the_table_has_median_best_worst_and_deviation_of_each_combination() -> None:
    lines = table([*mrpc(), record("cola", "0.001", 1, 50.0)], ["mrpc", "qnli"], []).splitlines()
    head = f"task | {RATE} | score | runs | median | best | worst | deviation | medians of all scores"
    assert lines[2] == f"| {head} |"
    assert lines[4:9] == [
        "| mrpc | 0.001 | accuracy | 3 | 71.00 | 90.00 | 70.00 | 11.27 | dev.accuracy 71.00 |",
        "| mrpc | 0.002 | accuracy | 3 | **75.00** | 80.00 | 60.00 | 10.41 | dev.accuracy 75.00 |",
        "| qnli |  |  | 0 | - | - | - | - | - |",
        "| cola | 0.001 | accuracy | 1 | 50.00 | 50.00 | 50.00 | - | dev.accuracy 50.00 |",
        "| mean of 2 tasks | 0.001 |  |  | 60.50 |  |  |  |  |",
    ]
    assert len(lines) == 9


def test_published_scores_are_further_columns_and_a_split_that_some_runs_lack_has_the_median_of_the_others() -> None:
    reported = [{"name": "Theirs", "source": "Their paper", "scores": {"mrpc": {"dev.accuracy": 90.7}}}]
    records = [record("mrpc", "1", 1, 70.0, **{"test.f1": 40.0}), record("mrpc", "1", 2, 80.0)]
    lines = table(records, ["mrpc", "cola"], reported).splitlines()
    assert lines[2].endswith("| medians of all scores | Theirs |")
    assert lines[4].endswith("| dev.accuracy 75.00, test.f1 40.00 | dev.accuracy 90.7 |")
    assert lines[5].endswith("| - | - |")
    assert lines[-1] == "Theirs: Their paper."


def test_of_pre_trainings_the_n_gram_perplexity_is_the_score() -> None:
    def pretraining(name: str, seed: int, **result: float) -> dict[str, Any]:
        known = {"run": f"{name},{seed}", "task": "pre-training", "varied": {"pretrain": name}, "seed": seed}
        return {**known, "result": {**result, "steps": 6}}

    records = [pretraining("a", seed, ngram_perplexity=seed / 10, perplexity=30.0) for seed in (1, 2, 4)]
    records += [pretraining("b", 1, perplexity=0.5), pretraining("c", 1)]
    lines = table(records, [], []).splitlines()
    assert lines[4].startswith("| pre-training | a | ngram_perplexity | 3 | **0.2** | 0.1 | 0.4 | 0.1528 | ")
    assert "perplexity 30" in lines[4]
    assert lines[5].startswith("| pre-training | b | perplexity | 1 | 0.5 | ")
    assert lines[6].startswith("| pre-training | c |  | 1 | - |")
    assert len(lines) == 7
