"""The layers: the distribution of their initial values."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import paddle

from ernie_gram.model import parameters
from ernie_gram.model.layers import Embedding, Linear
from tests.support.static_programs import fresh_program


def drawn(start: parameters.Normal, is_linear: bool) -> npt.NDArray[np.float32]:
    """Return the initial values of the weight of a linear layer, or of an embedding."""
    with fresh_program() as (executor, _, startup):
        linear = parameters.linear("t", 300, 300, start)
        Linear(linear) if is_linear else Embedding(linear.weight)
        executor.run(startup)
        return np.array(paddle.static.global_scope().find_var("t.w_0").get_tensor())


def test_initial_values_are_truncated_at_two_standard_deviations_or_not() -> None:
    for is_linear in (True, False):
        values = drawn(parameters.Normal(0.02), is_linear)
        assert 0.039 < np.abs(values).max() <= 0.04 + 1e-7
        assert abs(values.std() / 0.02 - 0.88) < 0.01  # standard deviation of a normal truncated at 2
        assert abs(values.mean()) < 3e-4
    values = drawn(parameters.Normal(0.02, truncated=False), is_linear=True)
    assert abs(values.std() / 0.02 - 1) < 0.01
    assert abs((np.abs(values) > 0.04).mean() - 0.0455) < 0.005  # share of a normal beyond two standard deviations
