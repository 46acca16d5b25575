"""Recall of whole entities by their length, and by groups of sentences with short and long entities.

An entity is found if a predicted one has its type and both ends. Lengths are in the tokens of the task: words, or
characters for Chinese.

Shape letters: S sentences, R runs, M names of models, K columns of a table.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from reader.system.arrays import Float64s, Int64s
from tasks.data.tag_schemes import Entity

GROUPS = 5
# Resamples of the sentences, and their seed. The interval has 95 % of them.
DRAWS, SEED = 1000, 1
TAILS = (0.025, 0.975)


class Column(NamedTuple):
    """A part of the entities of a split.

    Attributes:
        name: which entities it has, for example their length.
        gold: int64 [S], its entities in each sentence; found: int64 [R, S], those that each run found.
    """

    name: str
    gold: Int64s
    found: Int64s


class Recall(NamedTuple):
    """The recall of a model, in percent: the mean over its runs, each run, and an interval of the mean.

    `low` and `high` are the bounds of 95 % of the resamples of the sentences. They do not cover the variation between
    seeds, which `runs` shows. `difference` has mean, low and high of the difference to the first model, in the same
    resamples; None for the first model.
    """

    mean: float
    runs: list[float]
    low: float
    high: float
    difference: tuple[float, float, float] | None


def columns_by_length(
    gold: Sequence[Iterable[Entity]], predictions: Sequence[Sequence[Iterable[Entity]]], longest: int
) -> list[Column]:
    """Return a column for all entities, then one for each length; entities of `longest` tokens or more share the last.

    Args:
        gold: the entities of each sentence.
        predictions: those that each run found in each sentence.
    """
    counts = _counts(gold, gold, longest)
    found = np.stack([_counts(gold, of_run, longest) for of_run in predictions])
    names = [*(str(length) for length in range(1, longest)), f"{longest}+"]
    by_length = [Column(name, counts[:, i], found[:, :, i]) for i, name in enumerate(names)]
    return [Column("all", counts.sum(1), found.sum(2)), *by_length]


def _counts(gold: Sequence[Iterable[Entity]], predictions: Sequence[Iterable[Entity]], longest: int) -> Int64s:
    """Return the number of gold entities of each sentence and length that are among the predicted ones."""
    counts = np.zeros((len(gold), longest), np.int64)
    for row, (expected, predicted) in enumerate(zip(gold, predictions, strict=True)):
        for entity in set(expected) & set(predicted):
            counts[row, min(entity.end - entity.start, longest) - 1] += 1
    return counts


def columns_by_group(gold: Sequence[Sequence[Entity]], everything: Column) -> list[Column]:
    """Return a column for each of GROUPS groups of sentences, from short to long entities.

    The sentences that have entities are ordered by the average length of these and cut into groups. Sentences with the
    same average are in the same group; otherwise the groups are as equal in size as possible. There are fewer groups if
    there are fewer distinct averages. The name of a group is its smallest and its largest average.

    Args:
        everything: the column of all entities.
    """
    averages = np.array([np.mean([entity.end - entity.start for entity in each]) if each else 0 for each in gold])
    values, counts = np.unique(averages[averages > 0], return_counts=True)
    columns, first, left = list[Column](), 0, int(counts.sum())
    for group in range(GROUPS, 0, -1):
        if first == len(values):
            break
        # This group gets 1 / `group` of the sentences that are left, as nearly as equal averages allow.
        sizes = np.cumsum(counts[first:])
        stop = len(values) if group == 1 else first + 1 + int(np.argmin(np.abs(sizes - left / group)))
        low, high = values[first], values[stop - 1]
        inside = (averages >= low) & (averages <= high)
        name = f"{low:.3g}" if low == high else f"{low:.3g} to {high:.3g}"
        columns.append(Column(name, everything.gold * inside, everything.found * inside))
        first, left = stop, left - int(inside.sum())
    return columns


def recalls(columns: Sequence[Column], names: Sequence[str]) -> dict[str, list[Recall]]:
    """Return the recall of each model in each column; no column may be without entities.

    Args:
        names: the name of the model of each run. Runs with the same name are seeds of one model.
    """
    gold = np.stack([column.gold for column in columns], 1)
    found = np.stack([column.found for column in columns], 2)
    models = list(dict.fromkeys(names))
    runs = {name: [row for row, each in enumerate(names) if each == name] for name in models}
    means = np.stack([found[runs[name]].mean(0) for name in models])
    weights = np.random.default_rng(SEED).multinomial(len(gold), np.full(len(gold), 1 / len(gold)), DRAWS)
    with np.errstate(invalid="ignore"):
        # [M, draws, K]; NaN, which the quantiles ignore, for a resample without entities of a column.
        resampled = 100 * (weights @ means) / (weights @ gold)
    totals = 100 * found.sum(1) / gold.sum(0)
    return {
        name: [
            _recall(totals[runs[name], k], resampled[m, :, k], totals[runs[models[0]], k], resampled[0, :, k], m > 0)
            for k in range(len(columns))
        ]
        for m, name in enumerate(models)
    }


def _recall(runs: Float64s, draws: Float64s, first: Float64s, first_draws: Float64s, is_compared: bool) -> Recall:
    mean = float(runs.mean())
    low, high = map(float, np.nanquantile(draws, TAILS))
    difference = None
    if is_compared:
        bounds = np.nanquantile(draws - first_draws, TAILS)
        difference = mean - float(first.mean()), float(bounds[0]), float(bounds[1])
    return Recall(mean, runs.tolist(), low, high, difference)
