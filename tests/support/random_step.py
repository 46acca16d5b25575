"""A random batch for a training step of any configuration."""

from __future__ import annotations

import numpy as np

from ernie_gram.pretraining.config import PretrainConfig
from ernie_gram.pretraining.sizes import BatchShape, CorpusSizes
from reader.batches import fields
from reader.batches.fields import Batch


def random_batch(config: PretrainConfig, sizes: CorpusSizes, shape: BatchShape) -> Batch:
    """Return random sequences of equal length, without padding, with the fields that the objective reads."""
    random = np.random.default_rng(0)
    rows, width, predicted = shape.sequences, shape.slots, max(1, round(shape.predicted))
    slots = np.sort(np.argsort(random.random((rows, width - 2)))[:, :predicted] + 1)
    label_field = fields.COARSE_LABELS if config.objective.is_explicit else fields.TOKEN_LABELS
    batch = {
        fields.INPUT_IDS: random.integers(0, sizes.tokens, (rows, width)),
        fields.LENGTHS: np.full(rows, width),
        fields.SLOTS: (slots + np.arange(rows)[:, None] * width).flatten(),
        label_field: random.integers(0, sizes.classes(config), slots.size),
    }
    if config.objective.has_queries:
        queries, ranks = max(1, shape.queries), min(2, config.model.max_ngram_tokens)
        fine = np.arange(rows)[:, None] * queries + np.arange(max(1, min(round(shape.fine), queries)))
        batch |= {
            fields.QUERY_SLOTS: np.sort(np.resize(slots, (rows, queries))),
            fields.QUERY_RANKS: random.integers(0, ranks, (rows, queries)),
            fields.FINE_ROWS: fine.flatten(),
            fields.FINE_LABELS: random.integers(0, sizes.tokens, fine.size),
        }
    return {field.name: values for field, values in batch.items()}
