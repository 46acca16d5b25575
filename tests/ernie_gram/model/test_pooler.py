"""The pooler against its definition in numpy."""

from __future__ import annotations

import numpy as np

from ernie_gram.model.config import ModelConfig
from tests.support import reference_model as reference
from tests.support.static_programs import run


def test_the_pooler_maps_the_first_slot_of_every_sequence() -> None:
    from ernie_gram.model.encoder import Pooler

    config = ModelConfig(hidden_size=12, num_attention_heads=3)
    hidden = np.random.default_rng(1).standard_normal((3, 5, 12)).astype("float32")

    def build(feeds: dict) -> list:
        return [Pooler(config)(feeds["first"])]

    (found,), p = run(build, {"first": hidden[:, 0]})
    assert {name: value.shape for name, value in p.items()} == {"pooled_fc.w_0": (12, 12), "pooled_fc.b_0": (12,)}
    np.testing.assert_allclose(found, [reference.pooled(p, rows) for rows in hidden], atol=1e-6)
