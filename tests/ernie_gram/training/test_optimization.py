"""The learning rate schedule, and AdamW with clipping and weight decay of matrices against numpy."""

from __future__ import annotations

import dataclasses

import numpy as np
import paddle
import pytest

from ernie_gram.pretraining.config import PretrainConfig
from ernie_gram.training.config import OptimizerConfig, TrainerConfig
from ernie_gram.training.optimization import add_adamw, clip_by_global_norm, learning_rate, set_learning_rate
from ernie_gram.training.variables import get_arrays
from tests.support.static_programs import fresh_program, run

CONFIG = PretrainConfig(
    optimizer=OptimizerConfig(
        # An epsilon that can be seen in the updates.
        learning_rate=0.02,
        warmup_steps=3,
        weight_decay=0.1,
        max_grad_norm=0.5,
        beta2=0.98,
        epsilon=0.01,
    ),
    trainer=TrainerConfig(max_steps=10),
)


def rate_at(step: int) -> float:
    return learning_rate(step, CONFIG.optimizer, CONFIG.decay_steps)


def test_the_learning_rate_rises_to_its_peak_and_falls_to_zero() -> None:
    rates = [rate_at(step) / 0.02 for step in range(12)]
    assert rates[:4] == pytest.approx([1 / 3, 2 / 3, 1, 1])
    assert rates[4:] == pytest.approx([6 / 7, 5 / 7, 4 / 7, 3 / 7, 2 / 7, 1 / 7, 0, 0])
    longer = dataclasses.replace(CONFIG, optimizer=dataclasses.replace(CONFIG.optimizer, decay_steps=20))
    assert learning_rate(9, longer.optimizer, longer.decay_steps) == pytest.approx(0.02 * 11 / 17)


def test_updates_equal_adamw_with_clipping_in_numpy() -> None:
    random = np.random.default_rng(0)
    start = {"a.w_0": random.standard_normal((4, 3)), "a.b_0": random.standard_normal(3)}
    inputs = random.standard_normal((10, 5, 4))
    with fresh_program() as (executor, main, startup):
        x = paddle.static.data("x", [5, 4])
        parameters = [
            paddle.create_parameter(
                list(value.shape), "float32", name, default_initializer=paddle.nn.initializer.Assign(value)
            )
            for name, value in start.items()
        ]
        loss = ((paddle.matmul(x, parameters[0]) + parameters[1]) ** 2).sum()
        gradients = paddle.static.gradients([loss], parameters)
        norm = clip_by_global_norm(gradients, CONFIG.optimizer.max_grad_norm)
        pairs = list(zip(parameters, gradients, strict=True))
        add_adamw(pairs, CONFIG.optimizer, None, None)
        read = {operation.attrs()["name"] for operation in main.global_block().ops if operation.name() == "pd_op.data"}
        assert read == {"x", "learning_rate", "beta1_power", "beta2_power"}  # no operation for each moment
        executor.run(startup)
        norms = []
        for step, batch in enumerate(inputs):
            set_learning_rate(rate_at(step))
            norms.append(executor.run(main, feed={"x": batch.astype("float32")}, fetch_list=[norm])[0])
        found = get_arrays(list(start))

    p = {name: value.copy() for name, value in start.items()}
    m, v = ({name: np.zeros_like(value) for name, value in start.items()} for _ in range(2))
    for step, batch in enumerate(inputs):
        error = 2 * (batch @ p["a.w_0"] + p["a.b_0"])
        gradients = {"a.w_0": batch.T @ error, "a.b_0": error.sum(0)}
        size = np.sqrt(sum((g**2).sum() for g in gradients.values()))
        assert norms[step] == pytest.approx(size, rel=1e-4)
        rate = rate_at(step)
        for name, gradient in gradients.items():
            gradient = gradient * min(1, 0.5 / size)
            m[name] = 0.9 * m[name] + 0.1 * gradient
            v[name] = 0.98 * v[name] + 0.02 * gradient**2
            corrected = m[name] / (1 - 0.9 ** (step + 1)), v[name] / (1 - 0.98 ** (step + 1))
            if name == "a.w_0":
                p[name] *= 1 - rate * 0.1
            p[name] -= rate * corrected[0] / (np.sqrt(corrected[1]) + 0.01)
    for name, value in p.items():
        np.testing.assert_allclose(found[name], value, atol=2e-5)


@pytest.mark.parametrize("number", [np.nan, np.inf, 1e30])
def test_the_norm_is_not_finite_if_a_gradient_or_its_square_is_not(number: float) -> None:
    """The training stops, or skips the update, by the norm alone."""
    fetched, _ = run(
        lambda feeds: [clip_by_global_norm([feeds["g"] * 1, paddle.ones([2])], 1.0)],
        {"g": np.array([1.0, number], "float32")},
    )
    assert not np.isfinite(fetched[0])


def test_the_norm_of_12_million_numbers_is_accurate() -> None:
    """The accuracy of a float32 sum of so many terms depends on the order of the additions."""
    gradient = np.random.default_rng(0).random((3000, 4000), np.float32)
    fetched, _ = run(lambda feeds: [clip_by_global_norm([feeds["g"]], 1e9)], {"g": gradient})
    assert fetched[-1] == pytest.approx(np.sqrt((gradient.astype(np.float64) ** 2).sum()), rel=1e-6)
