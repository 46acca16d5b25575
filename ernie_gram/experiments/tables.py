"""Tables of the results of an experiment, with their spread over the seeds."""

from __future__ import annotations

import csv
import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ernie_gram.experiments.planned_run import PlannedRun, Result
from reader.system.atomic_files import atomic_file

# Finished runs with their results, in order of the plan.
Finished = Sequence[tuple[PlannedRun, Result]]


class Spread(NamedTuple):
    """The values of several seeds: number, mean, median, best, worst, and standard deviation (0 for one seed)."""

    seeds: int
    mean: float
    median: float
    best: float
    worst: float
    deviation: float


def spread_of(values: Sequence[float], direction: str = "max") -> Spread:
    """Return the spread of at least one value; `direction` is "max" or "min", whichever is better."""
    worst, best = sorted((min(values), max(values)), reverse=direction == "min")
    deviation = statistics.stdev(values) if len(values) > 1 else 0.0
    return Spread(len(values), statistics.mean(values), statistics.median(values), best, worst, deviation)


def by_setting(finished: Finished) -> dict[tuple[tuple[str, str], ...], list[Result]]:
    """Return the results of each combination of settings, over its seeds, in order of the plan."""
    groups: dict[tuple[tuple[str, str], ...], list[Result]] = {}
    for run, result in finished:
        groups.setdefault(tuple(run.varied.items()), []).append(result)
    return groups


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table in Markdown."""
    return [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}", *(f"| {' | '.join(cells)} |" for cells in rows)]


def write_csv(finished: Finished, target: Path) -> None:
    """Write a line for each finished run: its name, what is varied, its seed, and the numbers of its result."""
    rows: list[Mapping[str, str | float]] = [
        {"run": run.name, **run.varied, "seed": run.seed, **result} for run, result in finished
    ]
    names = list(dict.fromkeys(name for row in rows for name in row))
    with atomic_file(target) as partial, partial.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(rows)
