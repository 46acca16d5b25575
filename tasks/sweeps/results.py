"""The results of finished runs, in the units of the papers' tables."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from reader.errors import InputError
from tasks.metrics.catalog import METRICS
from tasks.metrics.metric import Metric
from tasks.training.prepare import RESULT

Result = dict[str, Any]
# The scores of each metric that papers report; of other metrics, the main one.
REPORTED = {
    "accuracy_f1": ("accuracy", "f1"),
    "correlation": ("pearson", "spearman"),
    "squad_v1": ("exact_match", "f1"),
    "squad_v2": ("exact", "f1"),
    "cmrc2018": ("em", "f1"),
    "dureader_robust": ("em", "f1"),
    "race": ("accuracy", "high", "middle"),
}


class Spread(NamedTuple):
    """Scores of several seeds: number, median, best, worst, and standard deviation (0 for one seed)."""

    seeds: int
    median: float
    best: float
    worst: float
    deviation: float


def read_result(folder: Path) -> Result | None:
    """Return the content of result.json of a finished run, or None if the run is not finished.

    Raises InputError if the file is damaged.
    """
    path = folder / RESULT
    if not path.is_file():
        return None
    try:
        result: Result = json.loads(path.read_text(encoding="utf-8"))
        result["scores"], result["settings"], METRICS[result["metric"]["name"]]
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}: damaged: {error}; remove it, and the run is evaluated again") from error
    return result


def reported_metrics(metric: Metric) -> tuple[str, ...]:
    """Return the names of the scores that papers report."""
    return REPORTED.get(metric.name, (metric.main,))


def reported_value(metric: Metric, value: float) -> float:
    """Return a score in the unit of papers: fractions in percent."""
    return 100 * value if metric.unit == "fraction" else value


def spread_of(values: Sequence[float], metric: Metric) -> Spread:
    """Return the spread of at least one value."""
    worst, best = sorted((min(values), max(values)), reverse=metric.direction == "min")
    deviation = statistics.stdev(values) if len(values) > 1 else 0.0
    return Spread(len(values), statistics.median(values), best, worst, deviation)


def reported_scores(result: Result) -> dict[str, float]:
    """Return the scores that papers report, as SPLIT.METRIC, in their units."""
    metric = METRICS[result["metric"]["name"]]
    return {
        f"{split}.{name}": reported_value(metric, scores[name])
        for split, scores in result["scores"].items()
        for name in reported_metrics(metric)
        if name in scores
    }
