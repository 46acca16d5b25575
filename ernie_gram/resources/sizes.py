"""The shape of the batch of one process, from which a prediction starts."""

from __future__ import annotations

from dataclasses import replace

from ernie_gram.pretraining.config import PretrainConfig
from ernie_gram.pretraining.sizes import BatchShape
from reader.batches.feeder import Feeder
from reader.batches.sampler import sample_indices
from reader.corpus.memmap import SPECIALS_PER_SEQUENCE

# Sequences from which the mean numbers of slots are measured.
SAMPLE = 256


def measured_shape(feeder: Feeder, sequences: int) -> BatchShape:
    """Return the shape of a batch of `sequences` sequences of a corpus.

    Widths, padding and means per sequence are measured on one batch: the first sequences in the training order, at most
    SAMPLE.
    """
    count = min(sequences, SAMPLE)
    batch = feeder.batch(*sample_indices(0, count, len(feeder), feeder.masking.seed))
    return replace(BatchShape.of(batch), sequences=sequences)


def assumed_shape(config: PretrainConfig, sequences: int, tokens_per_unit: float) -> BatchShape:
    """Return the shape of a batch of full sequences of a corpus that is not built yet.

    `tokens_per_unit` is the mean number of tokens of a unit, n-grams and single tokens together.
    """
    objective, tokens = config.objective, config.data.max_seq_len - SPECIALS_PER_SEQUENCE
    masked_tokens = objective.mask_fraction * tokens
    if not objective.is_explicit:
        return BatchShape(sequences, config.data.max_seq_len, masked_tokens)
    masked_units = masked_tokens / tokens_per_unit
    slots = round(config.data.max_seq_len - masked_tokens + masked_units)
    queries = masked_tokens if objective.has_queries else 0.0
    return BatchShape(sequences, slots, masked_units, round(queries), queries)
