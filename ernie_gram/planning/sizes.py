"""The sizes that a prediction starts from: those of the corpus, and those of the batch of one process.

Shape letters: B sequences, L context slots, M predicted slots, K query rows per sequence, Q query rows without padding;
F tokens, N n-grams, C = F + N classes.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ernie_gram.pretraining.config import PretrainConfig
from reader.batches import fields
from reader.batches.feeder import Feeder
from reader.batches.sampler import sample_indices
from reader.corpus.memmap import SPECIALS_PER_SEQUENCE, Corpus

# Sequences from which the mean numbers of slots are measured.
SAMPLE = 256


@dataclass(frozen=True)
class CorpusSizes:
    """Sizes of a corpus.

    Attributes:
        tokens: F.
        ngrams: N.
        shares: float64 [N], share of each n-gram in the units of the corpus; None if unknown.
    """

    tokens: int
    ngrams: int
    shares: npt.NDArray[np.float64] | None = field(default=None, compare=False)

    @classmethod
    def of(cls, corpus: Corpus) -> CorpusSizes:
        """The sizes of a built corpus."""
        info, counts = corpus.info, corpus.unit_counts
        return cls(info.num_tokens, info.num_ngrams, counts[info.num_tokens :] / max(1, counts.sum()))

    def classes(self, config: PretrainConfig) -> int:
        """Return the number of classes of the head over the masked slots: C, or F under contiguous masking."""
        return self.tokens + (self.ngrams if config.objective.is_explicit else 0)

    def expected_ngrams(self, drawn: float) -> float:
        """Return the expected number of different n-grams among `drawn` units, drawn independently.

        They are drawn by their shares: the samples of a generator whose probabilities are right have the frequencies of
        the text. If the shares are unknown, all units are equally frequent, which gives more n-grams than text does.
        """
        if self.shares is None:
            return -self.ngrams * float(np.expm1(drawn * np.log1p(-1 / (1 + self.tokens + self.ngrams))))
        return -float(np.sum(np.expm1(drawn * np.log1p(-np.minimum(self.shares, 1 - 1e-12)))))


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


def sequences_per_rank(config: PretrainConfig, ranks: int) -> int:
    """Return the largest number of sequences of a batch that one of `ranks` processes gets, not all at a time."""
    return -(-config.data.batch_size // ranks)


def measured_shape(feeder: Feeder, sequences: int) -> BatchShape:
    """Return the shape of a batch of `sequences` sequences of a corpus.

    Widths are those of a batch of at most SAMPLE sequences, the first of the training order; numbers per sequence are
    its means. Its padding is that of batches of this size.
    """
    count = min(sequences, SAMPLE)
    batch = feeder.batch(*sample_indices(0, count, len(feeder), feeder.masking.seed))
    slots = batch[fields.INPUT_IDS.name].shape[1]
    has_queries = fields.QUERY_SLOTS.name in batch
    return BatchShape(
        sequences=sequences,
        slots=slots,
        predicted=len(batch[fields.SLOTS.name]) / count,
        queries=batch[fields.QUERY_SLOTS.name].shape[1] if has_queries else 0,
        fine=len(batch[fields.FINE_ROWS.name]) / count if has_queries else 0.0,
        padding=1 - float(np.sum(batch[fields.LENGTHS.name])) / (count * slots),
    )


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
