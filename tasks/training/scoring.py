"""Compute the scores of a split batch by batch, whatever computes a batch."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ernie_gram.run.termination import until_requested
from reader.batches.fields import Batch
from reader.system.progress import progress
from tasks.data.batches import evaluation_batches
from tasks.data.features import Features, Float32s


def batch_scores(
    compute: Callable[[Batch], Float32s], features: Features, width: int, batch_size: int, rank: int = 0, size: int = 1
) -> Float32s:
    """Return the scores of all units of some features, float32 [U, width]; rows of other ranks are 0.

    Each rank computes whole batches, so that the scores do not depend on the number of ranks.

    Args:
        compute: returns the scores of the units of a batch.
        width: see Kind.width.
    """
    scores = np.zeros((features.num_units, width), np.float32)
    batches = evaluation_batches(features.lengths, batch_size)[rank::size]
    with progress("predicting", sum(map(len, batches)), " samples") as phase:
        for samples in until_requested(batches):
            scores[features.unit_rows(samples)] = compute(features.batch(samples))
            phase.advance(len(samples))
    return scores
