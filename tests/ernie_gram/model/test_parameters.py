"""Settings in downloaded files may have any numbers: checking them takes neither time nor memory."""

from __future__ import annotations

import tracemalloc

import pytest

from ernie_gram.formats.parameters import encoder_shapes
from ernie_gram.model.config import ModelConfig

HUGE = 2 * 10**9


@pytest.mark.parametrize("start", ["normal", "distance", "zero"])
def test_declaring_an_encoder_with_a_huge_number_of_heads_allocates_nothing_of_its_size(start: str) -> None:
    sizes = {"vocab_size": 10, "num_hidden_layers": 1, "hidden_size": HUGE, "num_attention_heads": HUGE}
    tracemalloc.start()
    try:
        shapes = encoder_shapes(ModelConfig(**sizes, relative_position_start=start))  # type: ignore[arg-type]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert shapes["rel_pos_embedding"] == (33, HUGE)
    assert peak < 1e6
