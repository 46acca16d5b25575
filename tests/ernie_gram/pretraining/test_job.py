"""The operations that a pre-training job reports for a batch are those of its shape, on a CPU without padding."""

from __future__ import annotations

import pytest

from ernie_gram.pretraining.sizes import BatchShape, CorpusSizes
from ernie_gram.pretraining.terms.catalog import step_flops
from tests.support.small_model import NGRAMS, RUNGS, TOKENS, config_of, random_batch


@pytest.mark.parametrize("rung", RUNGS)
def test_operations_are_those_of_the_batch(rung: str) -> None:
    from ernie_gram.pretraining.job import batch_flops

    config, sizes, batch = config_of(rung), CorpusSizes(TOKENS, NGRAMS), random_batch(rung)
    queries = batch["query_slots"].shape[1] if "query_slots" in batch else 0
    fine = len(batch["fine_rows"]) if queries else 0
    sequences, slots = batch["input_ids"].shape
    mean = batch["lengths"].mean()
    assert slots > mean
    shape = BatchShape(sequences, round(mean), len(batch["slots"]) / sequences, queries, fine / sequences)
    assert batch_flops(config, sizes, batch) == sum(step_flops(config, sizes, shape).values()) > 0
