"""The layers: the distribution of their initial values."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def drawn(layer: str, *arguments: object, **settings: object) -> npt.NDArray[np.float32]:
    """Return the initial values of the parameter "t" of a layer."""
    import paddle

    from ernie_gram.model import layers
    from tests.support.static_programs import fresh_scope

    with fresh_scope() as executor:
        main, startup = paddle.static.Program(), paddle.static.Program()
        with paddle.static.program_guard(main, startup), paddle.utils.unique_name.guard():
            getattr(layers, layer)(*arguments, **settings)
        executor.run(startup)
        return np.array(paddle.static.global_scope().find_var("t").get_tensor())


def test_initial_values_are_truncated_at_two_standard_deviations() -> None:
    for values in (drawn("Embedding", "t", 300, 300, 0.02), drawn("Linear", "x", 300, 300, 0.02, "t")):
        assert 0.039 < np.abs(values).max() <= 0.04 + 1e-7
        assert abs(values.std() / 0.02 - 0.88) < 0.01  # standard deviation of a normal truncated at 2
        assert abs(values.mean()) < 3e-4


def test_initial_values_that_are_not_truncated() -> None:
    values = drawn("Linear", "x", 300, 300, 0.02, "t", truncated=False)
    assert abs(values.std() / 0.02 - 1) < 0.01
    assert abs((np.abs(values) > 0.04).mean() - 0.0455) < 0.005  # share of a normal beyond two standard deviations
