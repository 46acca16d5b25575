"""The shape of a process's batch, measured on a corpus, and the n-grams in it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ernie_gram.pretraining.sizes import CorpusSizes, measured_shape
from reader.batches.feeder import Feeder, Masking
from reader.batches.sampler import sample_indices
from reader.corpus.memmap import Corpus


@pytest.mark.parametrize("queries", [False, True])
def test_the_measured_shape_is_that_of_the_first_batch(built: Path, queries: bool) -> None:
    feeder = Feeder(Corpus(built / "corpus"), 32, Masking(True, 0.15, seed=3, queries=queries))
    generator = feeder.training_batches(0, 20, 0, 1, 1)
    (batch,) = next(generator)
    generator.close()
    shape = measured_shape(feeder, 20)
    assert (shape.rows, shape.slots) == (batch["input_ids"].size, batch["input_ids"].shape[1])
    assert shape.predicted_rows == len(batch["slots"])
    assert shape.query_rows == (batch["query_slots"].size if queries else 0)
    assert shape.fine_rows == (len(batch["fine_rows"]) if queries else 0)
    assert shape.padding == pytest.approx(np.mean(batch["input_ids"] == feeder.special_ids.pad))
    # Large batches are measured on a sample.
    large = measured_shape(feeder, 10_000)
    assert (large.sequences, large.predicted) == (10_000, measured_shape(feeder, 256).predicted)


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
