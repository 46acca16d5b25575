"""Parts of the splits of a task, for measurements that must not take hours. All rows are read and encoded before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from tasks.training.prepare import Run
from tasks.training.splits import SplitData

Item = TypeVar("Item")


def spread(items: Sequence[Item], limit: int | None) -> list[Item]:
    """Return `limit` of the items, evenly spread and in their order; all of them if there are no more, or for None."""
    count = len(items)
    if limit is None or limit >= count:
        return list(items)
    return [items[i * count // limit] for i in range(limit)]


def with_examples(run: Run, split: SplitData, limit: int | None, training: bool) -> SplitData:
    """Return a split with `limit` of its examples; the account of its rows stays that of the whole split."""
    examples = spread(split.examples, limit)
    if len(examples) == len(split.examples):
        return split
    return replace(split, examples=examples, features=run.kind.encode(examples, run.tokenizer, training))


def examples_for(split: SplitData, samples: int) -> int:
    """Return for how many examples, evenly spread, a split has at most this number of samples; at least 1.

    An example of a long text may have several samples.
    """
    counts = np.bincount(split.features.example_of, minlength=len(split.examples))
    limit = min(samples, len(counts))
    while limit > 1 and sum(spread(counts.tolist(), limit)) > samples:
        limit -= 1
    return limit
