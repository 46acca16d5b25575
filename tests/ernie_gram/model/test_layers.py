"""The layers: the distribution of their initial values."""

from __future__ import annotations

import numpy as np


def test_initial_values_are_truncated_at_two_standard_deviations() -> None:
    import paddle

    from ernie_gram.model.layers import Embedding
    from tests.support.static_programs import fresh_scope

    with fresh_scope() as executor:
        main, startup = paddle.static.Program(), paddle.static.Program()
        with paddle.static.program_guard(main, startup), paddle.utils.unique_name.guard():
            Embedding("t", 300, 300, 0.02)
        executor.run(startup)
        values = np.array(paddle.static.global_scope().find_var("t").get_tensor())
    assert 0.039 < np.abs(values).max() <= 0.04 + 1e-7
    assert abs(values.std() / 0.02 - 0.88) < 0.01  # standard deviation of a normal truncated at 2
    assert abs(values.mean()) < 3e-4
