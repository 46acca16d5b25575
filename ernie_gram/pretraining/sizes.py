"""The sizes that a model takes from a corpus, the shape of a batch, and the frequencies of units.

Shape letters: B sequences, L context slots, M predicted slots, K query rows per sequence, Q query rows without padding;
F tokens, N n-grams, C = F + N classes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ernie_gram.pretraining.config import PretrainConfig
from reader.batches import fields
from reader.batches.feeder import Feeder
from reader.batches.fields import Batch
from reader.batches.sampler import sample_indices
from reader.corpus.memmap import SPECIALS_PER_SEQUENCE

# Sequences from which the mean numbers of slots are measured.
SAMPLE = 256


@dataclass(frozen=True)
class CorpusSizes:
    """Sizes that the model takes from a corpus: F tokens and N n-grams; C = F + N.

    Attributes:
        tokens: F.
        ngrams: N.
    """

    tokens: int
    ngrams: int

    def classes(self, config: PretrainConfig) -> int:
        """Return the number of classes of the head over the masked slots: C, or F under contiguous masking."""
        return self.tokens + (self.ngrams if config.objective.is_explicit else 0)


@dataclass(frozen=True)
class BatchShape:
    """The shape of the batch that one process holds at a time: its share of a batch, or a micro-batch.

    Attributes:
        sequences: B.
        slots: L, width of the context with padding.
        predicted: M / B, mean number of predicted slots per sequence.
        queries: K, query rows per sequence with padding; 0 without query rows.
        fine: Q / B, mean number of query rows per sequence without padding.
        padding: share of the B x L context slots that are padding.
    """

    sequences: int
    slots: int
    predicted: float
    queries: int = 0
    fine: float = 0.0
    padding: float = 0.0

    @classmethod
    def of(cls, batch: Batch) -> BatchShape:
        """Return the shape of a batch."""
        ids, lengths = batch[fields.INPUT_IDS.name], batch[fields.LENGTHS.name]
        queries, fine = batch.get(fields.QUERY_SLOTS.name), batch.get(fields.FINE_ROWS.name)
        return cls(
            sequences=len(ids),
            slots=ids.shape[1],
            predicted=len(batch[fields.SLOTS.name]) / len(ids),
            queries=0 if queries is None else queries.shape[1],
            fine=0.0 if fine is None else len(fine) / len(ids),
            padding=1 - float(lengths.sum()) / ids.size,
        )

    @property
    def rows(self) -> int:
        """B x L, rows of the context."""
        return self.sequences * self.slots

    @property
    def query_rows(self) -> int:
        """B x K."""
        return self.sequences * self.queries

    @property
    def predicted_rows(self) -> int:
        """M, rounded."""
        return round(self.sequences * self.predicted)

    @property
    def fine_rows(self) -> int:
        """Q, rounded."""
        return round(self.sequences * self.fine)

    def computed(self, fuses_attention: bool) -> BatchShape:
        """Return the shape of what is computed: with fused attention, as on a CPU, no padding (model/encoder.py).

        All sequences then have the mean length.
        """
        if not fuses_attention:
            return self
        return replace(self, slots=round((1 - self.padding) * self.slots), padding=0.0)


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


def log_frequencies(counts: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Return log p of every class by its frequency in the training corpus, with add-one smoothing; float64 [C]."""
    return np.log((counts + 1) / (counts.sum() + len(counts)))
