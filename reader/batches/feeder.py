"""Masked batches from a corpus: sampled, masked and prefetched by threads."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from itertools import count

import numpy as np

from reader.batches import fields
from reader.batches.fields import Batch
from reader.batches.masking import SpecialIds, mask_sequences, query_rows
from reader.batches.sampler import micro_batch_rows, rank_share, sample_indices
from reader.batches.sequences import find_sequences
from reader.corpus.memmap import Corpus
from reader.system.arrays import Int64s
from reader.system.processes import prefetched


@dataclass(frozen=True)
class Masking:
    """How sequences are masked.

    Attributes:
        explicit: one [MASK] per masked unit (True), or one [MASK] per token of it (False).
        fraction: share of the units of a sequence to mask.
        seed: random seed of the masks and of the order of the sequences.
        queries: whether to add query rows, for explicit masking only.
    """

    explicit: bool
    fraction: float
    seed: int
    queries: bool = False


class Feeder:
    """Masked batches of the sequences of a corpus.

    Attributes:
        starts: int64 [sequences + 1], index of the first unit of each sequence in the corpus, then the number of units.
        documents: int64, index of the first unit of each document in which sequences end, then the number of units.
        limits: where sequences end inside a document. A sequence may extend beyond the start of the next one.
    """

    def __init__(self, corpus: Corpus, max_seq_len: int, masking: Masking, pack_documents: bool = False) -> None:
        """Find the sequences of the corpus; see `find_sequences` for the arguments and for the errors raised."""
        self.corpus = corpus
        self.masking = masking
        found = find_sequences(corpus, max_seq_len, masking.fraction, pack_documents)
        self.starts, self.documents, self.limits = found
        vocabulary = corpus.vocabulary
        self.special_ids = SpecialIds(
            vocabulary.pad, vocabulary.cls, vocabulary.sep, vocabulary.mask, corpus.info.num_tokens
        )

    def __len__(self) -> int:
        """The number of sequences."""
        return len(self.starts) - 1

    def batch(self, indices: Int64s, epochs: Int64s) -> Batch:
        """Return a batch of the given sequences, cut and masked as in the given epochs (int64 [B] each).

        The names, shapes and dtypes are those of fields.py.
        """
        self.corpus.check_size()
        firsts = self.starts[indices]
        masking = self.masking
        masked = mask_sequences(
            np.asarray(self.corpus.units),  # calls of compiled functions are slow with a memmap object
            firsts,
            self.documents[np.searchsorted(self.documents, firsts, "right")],
            indices,
            epochs,
            masking.seed,
            masking.fraction,
            masking.explicit,
            self.limits,
            self.corpus.unit_tokens,
            self.corpus.ngram_offsets,
            self.corpus.ngram_tokens,
            self.special_ids,
        )
        batch = masked._asdict()
        labels = fields.COARSE_LABELS if masking.explicit else fields.TOKEN_LABELS
        batch[labels.name] = batch.pop("labels")
        if masking.queries:
            batch |= query_rows(masked, self.corpus)
        return batch

    def training_batches(
        self, consumed: int, batch_size: int, rank: int, world: int, workers: int, steps: int = 1
    ) -> Generator[list[Batch], None, None]:
        """Return an endless generator of one rank's micro-batches, a list per step, starting at sample `consumed`.

        Args:
            consumed: number of samples already consumed by all ranks together.
            batch_size: size of the global batch; this rank gets its share of the rows.
            workers: number of threads that prefetch batches; it does not change the batches.
            steps: largest number of micro-batches into which the share is divided, see `micro_batch_rows`.
        """
        parts = micro_batch_rows(batch_size, rank, world, steps)

        def make_batches(start: int) -> list[Batch]:
            samples = (sample_indices(start + a, start + b, len(self), self.masking.seed) for a, b in parts)
            return [self.batch(*indices_and_epochs) for indices_and_epochs in samples]

        return prefetched(make_batches, count(consumed, batch_size), workers)

    def held_out_indices(self, max_sequences: int) -> Int64s:
        """Return the indices of at most `max_sequences` sequences for evaluation, int64.

        They are spread evenly over the corpus, because its documents may be sorted by source.
        """
        chosen = min(max_sequences, len(self))
        return np.arange(chosen, dtype=np.int64) * len(self) // chosen

    def held_out_batches(self, batch_size: int, rank: int, world: int, max_sequences: int) -> Iterator[Batch]:
        """Yield one rank's share of the sequences of `held_out_indices`, cut and masked as in epoch 0.

        `batch_size` is the batch size of one rank; the last batch may be smaller.
        """
        chosen = self.held_out_indices(max_sequences)
        first, last = rank_share(len(chosen), rank, world)
        for start in range(first, last, batch_size):
            indices = chosen[start : min(start + batch_size, last)]
            yield self.batch(indices, np.zeros(len(indices), np.int64))
