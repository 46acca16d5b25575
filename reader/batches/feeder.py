"""Masked batches from a corpus: sampled, masked and prefetched by threads."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from reader.batches import fields
from reader.batches.fields import Batch
from reader.batches.masking import SpecialIds, mask_sequences, query_rows
from reader.batches.sampler import rank_share, sample_indices
from reader.corpus.memmap import Corpus

Int64s = npt.NDArray[np.int64]


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
        starts: int64 [sequences + 1], index of the first unit of each sequence in the corpus.
    """

    def __init__(self, corpus: Corpus, max_seq_len: int, masking: Masking, pack_documents: bool = False) -> None:
        """Cut the corpus into sequences; see Corpus.sequences for the arguments and for the errors raised."""
        self.corpus = corpus
        self.masking = masking
        self.starts = corpus.sequences(max_seq_len, pack_documents)
        vocabulary = corpus.vocabulary
        self.special_ids = SpecialIds(
            vocabulary.pad, vocabulary.cls, vocabulary.sep, vocabulary.mask, corpus.info.num_tokens
        )

    def __len__(self) -> int:
        """The number of sequences."""
        return len(self.starts) - 1

    def batch(self, indices: Int64s, epochs: Int64s) -> Batch:
        """Return a batch of the given sequences, masked as in the given epochs (int64 [B] each).

        The names, shapes and dtypes are those of fields.py.
        """
        parts = [self.corpus.units[self.starts[i] : self.starts[i + 1]] for i in indices]
        bounds = np.cumsum([0, *map(len, parts)], dtype=np.int64)
        masking = self.masking
        masked = mask_sequences(
            np.concatenate(parts).astype(np.int64),
            bounds,
            indices,
            epochs,
            masking.seed,
            masking.fraction,
            masking.explicit,
            self.corpus.ngram_offsets,
            self.corpus.ngram_tokens,
            self.special_ids,
        )
        labels = fields.COARSE_LABELS if masking.explicit else fields.TOKEN_LABELS
        batch = {
            fields.INPUT_IDS.name: masked.input_ids,
            fields.LENGTHS.name: masked.lengths,
            fields.SLOTS.name: masked.slots,
            labels.name: masked.labels,
            fields.SLOT_UNITS.name: masked.slot_units,
            fields.UNIT_IDS.name: masked.unit_ids,
        }
        if masking.queries:
            queries = query_rows(
                masked.slots,
                masked.labels,
                *masked.input_ids.shape,
                self.corpus.ngram_offsets,
                self.corpus.ngram_tokens,
                self.special_ids.num_tokens,
            )
            batch[fields.QUERY_SLOTS.name], batch[fields.QUERY_RANKS.name] = queries.slots, queries.ranks
            batch[fields.FINE_ROWS.name], batch[fields.FINE_LABELS.name] = queries.rows, queries.labels
        return batch

    def training_batches(
        self, consumed: int, batch_size: int, rank: int, world: int, workers: int
    ) -> Generator[Batch, None, None]:
        """Yield endless batches for one rank, starting at sample `consumed`.

        Args:
            consumed: number of samples already consumed by all ranks together.
            batch_size: size of the global batch; this rank gets its share of the rows.
            workers: number of threads that prefetch batches; it does not change the batches.
        """
        first, last = rank_share(batch_size, rank, world)
        num_prefetched = max(4, 2 * workers)

        def make_batch(start: int) -> Batch:
            return self.batch(*sample_indices(start + first, start + last, len(self), self.masking.seed))

        pool = ThreadPoolExecutor(workers, thread_name_prefix="feeder")
        waiting: deque[Future[Batch]] = deque()
        try:
            while True:
                while len(waiting) < num_prefetched:
                    waiting.append(pool.submit(make_batch, consumed))
                    consumed += batch_size
                yield waiting.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)

    def held_out_batches(self, batch_size: int, rank: int, world: int, max_sequences: int) -> Iterator[Batch]:
        """Yield one rank's share of the first `max_sequences` sequences, masked as in epoch 0.

        `batch_size` is the batch size of one rank; the last batch may be smaller.
        """
        first, last = rank_share(min(max_sequences, len(self)), rank, world)
        for start in range(first, last, batch_size):
            indices = np.arange(start, min(start + batch_size, last), dtype=np.int64)
            yield self.batch(indices, np.zeros(len(indices), np.int64))
