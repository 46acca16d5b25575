"""1 to 512 processes simulated in one: order and masks of the data, exchanges, and numbers beyond 32 bits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ernie_gram.pretraining.sizes import BatchShape, CorpusSizes, measured_shape
from ernie_gram.pretraining.terms.catalog import terms_of
from ernie_gram.resources.prediction import step_exchange
from reader.batches.feeder import Feeder, Masking
from reader.batches.sampler import permute, sample_indices
from reader.corpus.memmap import Corpus
from tests.support.cluster_simulation import exchanges_of, global_batch
from tests.support.small_model import NGRAMS, TOKENS, config_of

RANKS = (2, 7, 100, 512)
BATCH = 600


@pytest.fixture(scope="module")
def feeder(built: Path) -> Feeder:
    return Feeder(Corpus(built / "corpus"), 32, Masking(True, 0.15, seed=3, queries=True))


@pytest.mark.parametrize("ranks", RANKS)
def test_order_and_masks_are_the_same_for_every_number_of_processes(feeder: Feeder, ranks: int) -> None:
    # The batch crosses the end of the first epoch.
    consumed = len(feeder) - BATCH // 2
    rows = global_batch(feeder, consumed, BATCH, ranks)
    assert rows == global_batch(feeder, consumed, BATCH, 1)
    assert len(set(rows)) > BATCH * 0.9


@pytest.mark.parametrize("consumed", [2**31 - 3, 2**32 - 3, 500_000 * 5112, 3_000_000 * 512, 2**40])
def test_samples_beyond_32_bits_are_those_of_their_epoch(consumed: int) -> None:
    size = 2_000_003
    indices, epochs = sample_indices(consumed, consumed + 6, size, 7)
    assert epochs.tolist() == [(consumed + i) // size for i in range(6)]
    assert indices.tolist() == [permute((consumed + i) % size, size, 7, (consumed + i) // size) for i in range(6)]
    assert len(set(indices.tolist())) == 6
    assert indices.min() >= 0


@pytest.mark.parametrize("rung", ["explicit", "both"])
def test_all_processes_exchange_the_same_tensors_in_the_same_order_and_the_predicted_bytes(
    monkeypatch: pytest.MonkeyPatch, rung: str
) -> None:
    from ernie_gram.distributed import collectives

    # Small buckets, so that a small model has more than 20 of them.
    monkeypatch.setattr(collectives, "BUCKET_NUMBERS", 20)
    config, sizes = config_of(rung), CorpusSizes(TOKENS, NGRAMS)
    first = exchanges_of(config, sizes, 0, 128)
    assert len(first.numbers) > 20
    if rung == "explicit":
        assert exchanges_of(config, sizes, 127, 128) == first == exchanges_of(config, sizes, 1, 512)
    # Under "both", the rows of n-grams are exchanged by row. Without samples there are none.
    assert first.by_row == (rung == "both")
    predicted, _ = step_exchange(config, CorpusSizes(TOKENS, NGRAMS), BatchShape(1, 20, 0.0), 128)
    # Each exchange has one more number, which fixes the order. Losses and their rows are exchanged too, and a flag.
    assert first.bytes - predicted == 4 * (len(first.numbers) + 2 * len(terms_of(config.objective)) + 1)


def test_a_batch_has_as_many_rows_of_ngrams_as_their_frequencies_in_the_corpus_predict(feeder: Feeder) -> None:
    """Those that a perfect generator samples, which are those at the masked slots."""
    sizes, shape = CorpusSizes.of(feeder.corpus), measured_shape(feeder, BATCH)
    units = feeder.batch(*sample_indices(0, BATCH, len(feeder), feeder.masking.seed))["coarse_labels"]
    rows = len(np.unique(units[units >= feeder.corpus.info.num_tokens]))
    assert rows == pytest.approx(sizes.expected_ngrams(shape.predicted * BATCH), rel=0.1)
    assert rows < 0.95 * sizes.ngrams  # so that not all of them are used anyway
