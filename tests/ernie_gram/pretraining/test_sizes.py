"""The shape of a process's batch, measured on a corpus."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ernie_gram.pretraining.sizes import measured_shape
from reader.batches.feeder import Feeder, Masking
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
