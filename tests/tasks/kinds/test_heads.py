"""The heads: initial values of the output layer."""

from __future__ import annotations

import numpy as np


def test_output_weights_are_drawn_from_a_normal_that_is_not_truncated() -> None:
    import paddle

    from ernie_gram.model.config import ModelConfig
    from tasks.kinds.heads import output_layer
    from tests.support.static_programs import fresh_scope

    with fresh_scope() as executor:
        main, startup = paddle.static.Program(), paddle.static.Program()
        with paddle.static.program_guard(main, startup), paddle.utils.unique_name.guard():
            output_layer("out", 400, 100, ModelConfig(initializer_range=0.03))
        executor.run(startup)
        weights, bias = (np.array(paddle.static.global_scope().find_var(f"out_{part}").get_tensor()) for part in "wb")
    assert weights.shape == (400, 100)
    assert abs(weights.std() / 0.03 - 1) < 0.02
    assert not bias.any()
