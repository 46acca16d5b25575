"""The numbers of single checks, where a pretended GPU would not show a fault in them."""

from __future__ import annotations

import numpy as np
import pytest

from ernie_gram.gpu_checks.check import Failed, Numbers
from ernie_gram.gpu_checks.equal_numbers import FLOAT32, HALF, require_equal
from ernie_gram.gpu_checks.runs import difference, largest_difference
from ernie_gram.gpu_checks.sampling import MAX_SIGMAS, deviations
from ernie_gram.run.run_log import Record


def test_samples_with_other_frequencies_are_found() -> None:
    random, classes, samples = np.random.default_rng(1), 3000, 100_000
    probabilities = 1 / np.arange(1, classes + 1)
    probabilities /= probabilities.sum()

    def found(drawn_from: np.ndarray) -> tuple[float, float]:
        return deviations(random.multinomial(samples, drawn_from / drawn_from.sum()), probabilities)

    for _ in range(20):
        assert max(map(abs, found(probabilities))) < MAX_SIGMAS
    # The most frequent class a tenth too often, one block of classes never, uniform, and a shift by one class.
    often, lost = probabilities.copy(), probabilities.copy()
    often[0] *= 1.1
    lost[94:188] = 0
    assert found(often)[1] > MAX_SIGMAS
    for wrong in (lost, np.ones(classes), np.roll(probabilities, 1)):
        assert found(wrong)[0] > MAX_SIGMAS


def records(*losses: float | None) -> list[Record]:
    found: list[Record] = []
    for step, loss in enumerate(losses, start=1):
        found.append({"kind": "train", "step": step} | ({} if loss is None else {"loss": loss}))
    return found


@pytest.mark.parametrize(
    ("found", "difference"),
    [
        (records(2.0, 4.0), 0.0),
        (records(2.0, 4.1), pytest.approx(0.025)),
        (records(2.0, None), float("inf")),
        (records(2.0, float("nan")), float("inf")),
        (records(2.0), float("inf")),
    ],
)
def test_the_largest_difference_of_losses(found: list[Record], difference: float) -> None:
    assert largest_difference(found, records(2.0, 4.0), "loss") == difference


def test_a_difference_is_relative_to_the_expected_array() -> None:
    assert difference(np.array([3.0, 4.5]), np.array([3.0, 4.0])) == pytest.approx(0.1)
    assert difference(np.array([np.nan, 0.0]), np.zeros(2)) == float("inf")


def test_the_worst_parameter_counts_in_float32_and_the_whole_vector_in_16_bits() -> None:
    numbers: Numbers = {"loss": 1e-6, "norm": 1e-6, "parameters": 2e-3, "gradients": 1e-6}
    numbers |= {"parameters_by_name": {"a": 1e-6, "b": 1e-3}, "gradients_by_name": {"a": 0.5, "b": 0.0}}
    with pytest.raises(Failed, match=r"^the value of b differs by 1\.0e-03, more than 0\.0001$"):
        require_equal(numbers, FLOAT32)
    expected = "1.0e-06 (loss), 1.0e-06 (norm), 2.0e-03 (parameters), 1.0e-06 (gradients)"
    assert require_equal(numbers, HALF, by_name=False) == expected
    with pytest.raises(Failed, match=r"^the norm of the gradient differs"):
        require_equal({**numbers, "norm": 0.03}, HALF, by_name=False)
