"""One operation for many parameters equals Paddle's AdamW for each of them, to the bit."""

from __future__ import annotations

import numpy as np
import paddle
import pytest

from ernie_gram.training.config import OptimizerConfig
from ernie_gram.training.optimization import add_adamw, set_learning_rate
from ernie_gram.training.variables import LEARNING_RATE, get_arrays, optimizer_names, persistent, zeros
from tests.support.static_programs import fresh_program

SHAPES = {"a.w_0": [33, 7], "a.b_0": [7], "b.w_0": [64, 64], "b_layer_norm_scale": [64]}
SETTINGS = OptimizerConfig(learning_rate=1e-3, weight_decay=0.1, beta2=0.98)
FACTORS = {"a.w_0": 0.25, "a.b_0": 0.25}
STEPS = 5


def factor_of(name: str) -> float:
    return FACTORS.get(name, 1.0)


def updated(fused: bool, bad_steps: tuple[int, ...] = ()) -> dict[str, np.ndarray]:
    """Return parameters, moments and powers after some updates; those of bad steps are skipped."""
    random = np.random.default_rng(0)
    names = optimizer_names(list(SHAPES))
    with fresh_program() as (executor, main, startup):
        good = paddle.static.data("good", [], "bool")
        gradients = [paddle.static.data(f"gradient {name}", shape) for name, shape in SHAPES.items()]
        parameters = [
            persistent(name, random.standard_normal(shape).astype("float32")) for name, shape in SHAPES.items()
        ]
        if fused:
            pairs = list(zip(parameters, gradients, strict=True))
            add_adamw(pairs, SETTINGS, factor_of, good if bad_steps else None)
        else:
            base_rate = persistent(LEARNING_RATE, np.zeros(1, np.float32))
            for parameter, gradient in zip(parameters, gradients, strict=True):
                moments = [zeros(f"{parameter.name}_moment{i}_0", list(parameter.shape)) for i in (1, 2)]
                powers = [
                    persistent(f"{parameter.name} beta{i}", np.array([beta], np.float32))
                    for i, beta in ((1, SETTINGS.beta1), (2, SETTINGS.beta2))
                ]
                rate = base_rate * factor_of(parameter.name)
                betas = (SETTINGS.beta1, SETTINGS.beta2, SETTINGS.epsilon)
                decays = parameter.name.endswith(".w_0")
                paddle._C_ops.adamw_(
                    *(parameter, gradient, rate, *moments, None, *powers, None, None, *betas),
                    *(1.0, SETTINGS.weight_decay, decays, False, 1000, False, False, False),
                )
            names = names[:-2]
        executor.run(startup)
        for step in range(STEPS + len(bad_steps)):
            made = {f"gradient {name}": random.standard_normal(shape) for name, shape in SHAPES.items()}
            set_learning_rate(1e-3 / (1 + step - sum(bad < step for bad in bad_steps)))
            feed = {name: values.astype("float32") for name, values in made.items()}
            executor.run(main, feed={**feed, "good": np.array(step not in bad_steps)})
        return get_arrays([*SHAPES, *names])


def test_parameters_and_moments_have_the_bits_of_adamw() -> None:
    found, expected = updated(fused=True), updated(fused=False)
    for name in expected:
        np.testing.assert_array_equal(found[name], expected[name], name)
    np.testing.assert_allclose(found["beta1_power"], 0.9 ** (STEPS + 1), rtol=1e-6)
    np.testing.assert_allclose(found["beta2_power"], 0.98 ** (STEPS + 1), rtol=1e-6)


@pytest.mark.parametrize("bad", [0, STEPS])
def test_a_skipped_update_changes_nothing(bad: int) -> None:
    steps = updated(fused=True, bad_steps=(bad,))
    powers = steps["beta1_power"], steps["beta2_power"]
    np.testing.assert_allclose(powers[0], 0.9 ** (STEPS + 1), rtol=1e-6)
    np.testing.assert_allclose(powers[1], 0.98 ** (STEPS + 1), rtol=1e-6)
    if bad == STEPS:
        # The last update was skipped, so all are those of the updates before it.
        for name, values in updated(fused=True).items():
            np.testing.assert_array_equal(steps[name], values, name)
