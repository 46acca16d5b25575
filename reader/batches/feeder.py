"""Batches from a corpus, drawn, masked and ready before the model asks for them."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from reader.batches import fields
from reader.batches.fields import Batch
from reader.batches.masking import Specials, mask_sequences, query_rows
from reader.batches.sampler import draw, rank_share
from reader.corpus.memmap import Corpus

Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Masking:
    """How sequences are masked.

    Attributes:
        explicit: one [MASK] for a masked unit (True), or one for each of its tokens (False).
        fraction: share of a sequence's units that is masked.
        seed: of the masks and of the order of the sequences.
        queries: also make the query rows of explicitly masked units.
    """

    explicit: bool
    fraction: float
    seed: int
    queries: bool = False


class Feeder:
    """A corpus as masked sequences of at most `max_seq_len` tokens; `packed`: see Corpus.sequences."""

    def __init__(self, corpus: Corpus, max_seq_len: int, masking: Masking, packed: bool = False) -> None:
        self.corpus = corpus
        self.masking = masking
        self.starts = corpus.sequences(max_seq_len, packed)
        vocabulary = corpus.vocabulary
        self.specials = Specials(
            vocabulary.pad, vocabulary.cls, vocabulary.sep, vocabulary.mask, corpus.info.num_tokens
        )

    def __len__(self) -> int:
        """How many sequences there are."""
        return len(self.starts) - 1

    def batch(self, indices: Int64s, epochs: Int64s) -> Batch:
        """The given sequences, masked as in the given epochs (int64 [B] each)."""
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
            self.specials,
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
                self.specials.num_tokens,
            )
            batch[fields.QUERY_SLOTS.name], batch[fields.QUERY_RANKS.name] = queries.slots, queries.ranks
            batch[fields.FINE_ROWS.name], batch[fields.FINE_LABELS.name] = queries.rows, queries.labels
        return batch

    def training_batches(
        self, consumed: int, batch_size: int, rank: int, world: int, workers: int
    ) -> Generator[Batch, None, None]:
        """Endless batches for one rank, from the `consumed`-th sample on.

        `workers` threads keep a few batches ready; their number does not change what comes.
        """
        first, last = rank_share(batch_size, rank, world)
        ahead = max(4, 2 * workers)

        def make(start: int) -> Batch:
            return self.batch(*draw(start + first, start + last, len(self), self.masking.seed))

        pool = ThreadPoolExecutor(workers, thread_name_prefix="feeder")
        waiting: deque[Future[Batch]] = deque()
        try:
            while True:
                while len(waiting) < ahead:
                    waiting.append(pool.submit(make, consumed))
                    consumed += batch_size
                yield waiting.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)

    def held_out_batches(self, rows: int, rank: int, world: int, most: int) -> Iterator[Batch]:
        """One rank's share of the first `most` sequences, `rows` at a time, masked as in epoch 0."""
        first, last = rank_share(min(most, len(self)), rank, world)
        for start in range(first, last, rows):
            indices = np.arange(start, min(start + rows, last), dtype=np.int64)
            yield self.batch(indices, np.zeros(len(indices), np.int64))
