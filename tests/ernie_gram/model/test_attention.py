"""The buckets of the relative position bias, against the written list of distance ranges."""

from __future__ import annotations

import dataclasses

import numpy as np
import paddle
import pytest

from ernie_gram.model.attention import relative_buckets
from ernie_gram.model.parameters import distance_start
from ernie_gram.pretraining.config import DataConfig, PretrainConfig
from ernie_gram.pretraining.network import PretrainModel
from ernie_gram.pretraining.sizes import CorpusSizes
from tests.support import reference_model as reference
from tests.support.small_model import MODEL
from tests.support.static_programs import fresh_program, run


@pytest.mark.parametrize("length", [1, 2, 9, 200])
def test_buckets_equal_the_reference(length: int) -> None:
    (table,), _ = run(lambda feeds: [relative_buckets(paddle.shape(feeds["x"])[0])], {"x": np.zeros(length, "float32")})
    assert table.tolist() == [[reference.bucket(q, k) for k in range(length)] for q in range(length)]


def start_value(head: int, bucket: int, heads: int) -> float:
    """Return the start value of the distance start, from a search for a query and a key in this bucket."""
    slope = [1, 1, 1 / 2, 1 / 2, 0, 0][head % 6]
    query, key = next((q, k) for q in (100, 1, 0) for k in (*range(1, 200), 0) if reference.bucket(q, k) == bucket)
    to_the_preferred_side = abs(key - query) if heads == 1 else key - query if head % 2 == 0 else query - key
    is_preferred = to_the_preferred_side > 0 and key > 0 and query > 0
    return -slope * (min(to_the_preferred_side, 8) if is_preferred else 8)


@pytest.mark.parametrize("heads", [1, 2, 6, 16])
def test_the_distance_start_prefers_near_keys_on_one_side_or_both_if_there_is_one_head(heads: int) -> None:
    expected = [[start_value(head, bucket, heads) for head in range(heads)] for bucket in range(33)]
    assert distance_start(heads).tolist() == expected


@pytest.mark.parametrize("start", ["normal", "distance", "zero"])
def test_the_start_applies_to_the_table_of_the_generator_too_unless_it_is_zero(start: str) -> None:
    model = dataclasses.replace(MODEL, relative_position_start=start)
    with fresh_program() as (executor, _, startup):
        PretrainModel(PretrainConfig(model=model, data=DataConfig(max_seq_len=20)), CorpusSizes(20, 4))
        executor.run(startup)
        for name in ("rel_pos_embedding", "generator_rel_pos_embedding"):
            table = np.array(paddle.static.global_scope().find_var(name).get_tensor())
            if start == "distance" or (start == "zero" and name.startswith("generator")):
                np.testing.assert_array_equal(table, distance_start(table.shape[1]))
            elif start == "zero":
                assert not table.any()
            else:
                assert np.abs(table).max() <= 2 * model.initializer_range + 1e-7
                assert len(np.unique(table)) > 0.9 * table.size
