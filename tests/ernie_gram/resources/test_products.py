"""The predicted operations are those of the matrix products of the program that trains."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ernie_gram.pretraining.sizes import BatchShape, CorpusSizes
from ernie_gram.pretraining.terms.catalog import recomputed_flops, step_flops
from ernie_gram.training.config import TrainerConfig
from tests.support.paddle_program import product_flops
from tests.support.small_model import MODEL, NGRAMS, RUNGS, TOKENS, config_of, random_batch

# Widths at which the products that are not counted, such as the look-up of the position bias, are small.
WIDE = replace(MODEL, hidden_size=192, out_emb_size=32, num_hidden_layers=1)
# "both" has the products of every other rung but "contiguous".
CASES = {
    **{rung: config_of(rung, WIDE) for rung in ("contiguous", "both")},
    "tied, mapped": config_of("explicit", replace(WIDE, out_emb_size=0, emb_size=64)),
    "both, recompute": replace(config_of("both", WIDE), trainer=TrainerConfig(recompute=True)),
}


def shape_of(rung: str) -> BatchShape:
    """Return the shape of `random_batch`."""
    has_queries = "query_slots" in random_batch(rung)
    return BatchShape(3, 20, 3, 6, 13 / 3) if has_queries else BatchShape(3, 20, 3)


@pytest.mark.parametrize("case", CASES)
def test_operations_are_those_of_the_built_program(case: str) -> None:
    rung, config = "both" if "both" in case else case if case in RUNGS else "explicit", CASES[case]
    counted = product_flops(config, CorpusSizes(TOKENS, NGRAMS), random_batch(rung))
    predicted = step_flops(config, CorpusSizes(TOKENS, NGRAMS), shape_of(rung))
    predicted += recomputed_flops(config, shape_of(rung))
    assert predicted == pytest.approx(counted, rel=0.02)


def test_operations_of_attention_grow_with_the_square_of_the_length_and_all_others_linearly() -> None:
    config, sizes = config_of("explicit", WIDE), CorpusSizes(TOKENS, NGRAMS)
    short, long = (step_flops(config, sizes, BatchShape(4, slots, slots / 10)) for slots in (100, 200))
    # With backward pass, over the four sequences: the scores of all pairs of slots, and the weighted sums of values.
    assert long - 2 * short == 3 * 4 * 4 * WIDE.hidden_size * (200**2 - 2 * 100**2)
