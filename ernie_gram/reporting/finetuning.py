"""The part of the page about the fine-tuning runs of a task: scores, curves, evaluations and confusions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ernie_gram.reporting.charts import chart
from ernie_gram.reporting.runs import ReportedRun, inner, names_in
from ernie_gram.reporting.tables import PERCENT, Cell, Table, column

SCALES = {"fraction": (100.0, PERCENT), "percent": (1.0, PERCENT)}


def finetuning_part(runs: Sequence[ReportedRun]) -> dict[str, Any]:
    """Return what the template shows of the runs of one task."""
    metric = next((metric for run in runs if (metric := inner(run.result, "metric"))), {})
    scale, unit = SCALES.get(str(metric.get("unit")), (1.0, ""))
    # The most frequent answer.
    constant = next((constant for run in runs if (constant := inner(run.result, "constant"))), {})
    always = {f"always {constant['answer']}": scores_of(constant)} if "answer" in constant else {}
    scores = {run.name: scores_of(run.result) for run in runs} | always
    keys = list(dict.fromkeys(key for found in scores.values() for key in found))
    # The log has the score that chooses by another name.
    chooses = next((key for key in keys if key.endswith(f": {metric.get('chooses')}")), "score")
    names = {key.replace(": ", "_"): key for key in keys} | {"score": chooses}
    titles = {name: names.get(name, name) for name in names_in(runs, "eval")}
    rows = []
    for key in keys:
        values = [[found[key]] if key in found else [] for found in scores.values()]
        # The thresholds of SQuAD 2.0 are no scores.
        rows.append([key, *(column(values) if key.endswith("_thresh") else column(values, scale, unit))])
    charts = [
        chart(
            runs, key + unit, name, {label: found[key] for label, found in always.items() if key in found}, scale=scale
        )
        for name, key in titles.items()
    ]
    charts += [chart(runs, "Training loss", "loss", kind="train")]
    charts += [chart(runs, "Learning rate", "learning_rate", kind="train")]
    return {
        "final": Table(["score", *map(Cell, scores)], rows),
        "charts": charts,
        "titles": titles,
        "scale": scale,
        "confusions": [confusion for run in runs for confusion in confusions(run)],
    }


def scores_of(result: dict[str, Any]) -> dict[str, float]:
    """Return the scores of all splits by "split: name"; counts, which are whole numbers, are left out."""
    return {
        f"{split}: {name}": value
        for split in inner(result, "scores")
        for name, value in inner(result, "scores", split).items()
        if isinstance(value, float)
    }


def confusions(run: ReportedRun) -> list[dict[str, Any]]:
    """Return for each split how often each label was predicted for each gold label, the most frequent errors apart."""
    found = []
    for split, counts in inner(run.result, "confusion").items():
        wrong = [(n, gold, label) for gold in counts for label, n in counts[gold].items() if label != gold]
        labels = sorted({*counts, *(label for predicted in counts.values() for label in predicted)})
        name = f"{run.name}, {split}"
        found.append({"name": name, "counts": counts, "labels": labels, "wrong": sorted(wrong, reverse=True)})
    return found
