"""Bytes between processes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ernie_gram.distributed.collectives import BUCKET_NUMBERS
from ernie_gram.pretraining.config import PretrainConfig
from ernie_gram.pretraining.sizes import BatchShape, CorpusSizes, measured_shape
from ernie_gram.resources.prediction import step_exchange
from reader.batches.feeder import Feeder, Masking
from reader.batches.sampler import sample_indices
from reader.corpus.memmap import Corpus

SHAPE = BatchShape(4, 475, 40.0, 77, 77.0)


def test_the_base_model_exchanges_only_the_rows_of_its_samples() -> None:
    config, sizes = PretrainConfig(), CorpusSizes(30_522, 300_000)
    exchanged, rows = step_exchange(config, sizes, SHAPE, 64)
    # Without the 300,000 x 768 numbers of the n-gram embedding; but with a mark per row, and the rows of the samples.
    table, samples = 300_000 * 768, config.data.batch_size * SHAPE.predicted
    assert exchanged == pytest.approx(1.59e9 - 4 * (table - 300_000 - rows * 768), rel=0.01)
    assert 0.8 * samples < rows < samples
    assert step_exchange(config, sizes, SHAPE, 1) == (0, 0)


@pytest.mark.parametrize("ngrams", [1000, 300_000])
def test_only_a_large_embedding_of_samples_is_exchanged_by_row(ngrams: int) -> None:
    sizes, config = CorpusSizes(1000, ngrams), PretrainConfig()
    tied = replace(config, model=replace(config.model, out_emb_size=0))
    without_generator = replace(config, objective=replace(config.objective, generator_weight=0.0, rtd_weight=0.0))
    assert step_exchange(tied, sizes, SHAPE, 2)[1] == step_exchange(without_generator, sizes, SHAPE, 2)[1] == 0
    assert bool(step_exchange(config, sizes, SHAPE, 2)[1]) == (ngrams * 768 > BUCKET_NUMBERS)


@pytest.mark.parametrize("drawn", [1, 1000])
def test_expected_ngrams_are_those_of_many_draws(drawn: int) -> None:
    random = np.random.default_rng(drawn)
    counts = np.concatenate([np.full(20, 50), 2000 // np.arange(1, 301)])
    for p, frequencies in ((counts / counts.sum(), (counts[20:] / counts.sum(),)), (None, ())):
        units = [random.choice(320, drawn, p=p) for _ in range(40)]
        found = np.mean([len(set(each[each >= 20].tolist())) for each in units])
        expected = CorpusSizes(20, 300, *frequencies).expected_ngrams(drawn)
        assert expected == pytest.approx(found, rel=0.1, abs=0.2)


def test_a_batch_has_as_many_rows_of_ngrams_as_their_frequencies_in_the_corpus_predict(corpus: Corpus) -> None:
    """Those that a perfect generator samples, which are those at the masked slots."""
    feeder = Feeder(corpus, 32, Masking(True, 0.15, seed=3, queries=True))
    sizes, shape = CorpusSizes.of(corpus), measured_shape(feeder, 600)
    units = feeder.batch(*sample_indices(0, 600, len(feeder), feeder.masking.seed))["coarse_labels"]
    rows = len(np.unique(units[units >= corpus.info.num_tokens]))
    assert rows == pytest.approx(sizes.expected_ngrams(shape.predicted * 600), rel=0.1)
    assert rows < 0.95 * sizes.ngrams  # so that not all of them are used anyway
