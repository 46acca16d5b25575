"""1 to 512 processes simulated in one: order and masks of the data, exchanges, and numbers beyond 32 bits."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import numpy as np
import pytest

from ernie_gram.planning.exchange import step_exchange
from ernie_gram.planning.sizes import measured_shape
from ernie_gram.pretraining.sizes import BatchShape, CorpusSizes
from reader.batches.feeder import Feeder, Masking
from reader.batches.sampler import permute, rank_share, sample_indices
from reader.corpus.memmap import Corpus
from tests.support.cluster_simulation import exchanges_of, global_batch, sampled_ngrams, sum_by_row
from tests.support.small_model import NGRAMS, TOKENS, config_of

RANKS = (1, 2, 3, 7, 8, 64, 100, 128, 511, 512)
BATCH = 600


@pytest.fixture(scope="module")
def feeder(built: Path) -> Feeder:
    return Feeder(Corpus(built / "corpus"), 32, Masking(True, 0.15, seed=3, queries=True))


@pytest.mark.parametrize("ranks", RANKS)
def test_order_and_masks_are_the_same_for_every_number_of_processes(feeder: Feeder, ranks: int) -> None:
    # The second batch crosses the end of the first epoch.
    consumed = len(feeder) - BATCH // 2
    assert global_batch(feeder, consumed, BATCH, ranks) == global_batch(feeder, consumed, BATCH, 1)


def test_order_and_masks_are_the_same_if_the_number_of_processes_changes_on_the_way(feeder: Feeder) -> None:
    steps = [global_batch(feeder, step * BATCH, BATCH, ranks) for step, ranks in enumerate((16, 1, 512, 5))]
    assert list(chain(*steps)) == global_batch(feeder, 0, 4 * BATCH, 1)
    assert len(set(steps[0])) > BATCH * 0.9


def test_shares_are_disjoint_complete_and_of_nearly_equal_size() -> None:
    for ranks in range(1, 513):
        shares = [rank_share(5112, rank, ranks) for rank in range(ranks)]
        assert [shares[0][0], shares[-1][1]] == [0, 5112]
        assert [last for _, last in shares[:-1]] == [first for first, _ in shares[1:]]
        assert {last - first for first, last in shares} <= {5112 // ranks, -(-5112 // ranks)}


@pytest.mark.parametrize("consumed", [2**31 - 3, 2**32 - 3, 500_000 * 5112, 3_000_000 * 512, 2**40])
def test_samples_beyond_32_bits_are_those_of_their_epoch(consumed: int) -> None:
    size = 2_000_003
    indices, epochs = sample_indices(consumed, consumed + 6, size, 7)
    assert epochs.tolist() == [(consumed + i) // size for i in range(6)]
    assert indices.tolist() == [permute((consumed + i) % size, size, 7, (consumed + i) // size) for i in range(6)]
    assert len(set(indices.tolist())) == 6
    assert indices.min() >= 0


@pytest.mark.parametrize("rung", ["explicit", "both"])
def test_all_processes_exchange_the_same_tensors_in_the_same_order_and_as_many_bytes_as_predicted(
    monkeypatch: pytest.MonkeyPatch, rung: str
) -> None:
    from ernie_gram.distributed import collectives
    from ernie_gram.planning import exchange
    from ernie_gram.pretraining.sizes import CorpusSizes

    # Small buckets, so that a small model has more than 20 of them.
    monkeypatch.setattr(collectives, "BUCKET_NUMBERS", 20)
    monkeypatch.setattr(exchange, "is_summed_by_row", lambda size: size > 20)
    config, sizes = config_of(rung), CorpusSizes(TOKENS, NGRAMS)
    first = exchanges_of(config, sizes, 0, 128)
    assert len(first.numbers) > 20
    if rung == "explicit":
        assert exchanges_of(config, sizes, 127, 128) == first == exchanges_of(config, sizes, 1, 512)
    # Under "both", the rows of n-grams are exchanged by row. Without samples there are none.
    assert first.by_row == (rung == "both")
    monkeypatch.setattr(exchange, "plan_buckets", lambda numbers: [[]] * (len(first.numbers) - 1))
    predicted = step_exchange(config, CorpusSizes(TOKENS, NGRAMS), BatchShape(1, 20, 0.0), 128)
    assert predicted.bytes == first.bytes + 4 * first.by_row
    assert predicted.sums == len(first.numbers) + first.by_row


@pytest.mark.parametrize("ranks", RANKS)
def test_rows_of_ngrams_are_summed_as_predicted_for_every_number_of_processes(feeder: Feeder, ranks: int) -> None:
    """The same rows as with one process, and as many as the frequencies of n-grams in the corpus predict."""
    sizes, shape = CorpusSizes.of(feeder.corpus), measured_shape(feeder, BATCH)
    samples = sampled_ngrams(feeder, 0, BATCH, ranks)
    random = np.random.default_rng(ranks)
    gradients = np.zeros((ranks, sizes.ngrams, 2), np.float32)
    for rank, ngrams in enumerate(samples):
        gradients[rank, sorted(ngrams)] = random.integers(1, 9, (len(ngrams), 2))
    total, rows = sum_by_row(list(gradients))
    np.testing.assert_array_equal(total, gradients.sum(0))
    assert rows == len(set(chain(*sampled_ngrams(feeder, 0, BATCH, 1))))
    assert rows == pytest.approx(sizes.expected_ngrams(shape.predicted * BATCH), rel=0.1)
    assert rows < 0.95 * sizes.ngrams  # so that not all of them are used anyway
