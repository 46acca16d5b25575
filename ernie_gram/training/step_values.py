"""The logged values of a training step: they stay on the device until they are read.

A fetch would make the program wait for a GPU at every step, and another set of fetches would be a second program, which
Paddle prepares from the beginning. So the program writes the values into one small variable.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import paddle
from paddle.nn.initializer import Constant
from paddle.pir.core import create_persistable_value

# The name of the variable.
STEP_VALUES = "step_values"


@dataclass(frozen=True)
class LastStep:
    """What is known after some steps.

    Attributes:
        values: of the last step, by name.
        steps: number of steps since the program was started.
        finite_steps: number of them before the first with a value that is not finite.
    """

    values: dict[str, float]
    steps: int
    finite_steps: int

    @property
    def is_finite(self) -> bool:
        """Whether all values of all steps were finite."""
        return self.steps == self.finite_steps


@dataclass(frozen=True)
class StepValues:
    """The values that a program keeps; `names` are theirs."""

    names: tuple[str, ...]

    def read(self) -> LastStep:
        """Return the values of the last step; waits until the device has finished it."""
        *values, steps, finite_steps = np.array(
            paddle.static.global_scope().find_var(STEP_VALUES).get_tensor()
        ).tolist()
        return LastStep(dict(zip(self.names, values, strict=True)), int(steps), int(finite_steps))


def keep(values: dict[str, paddle.Tensor]) -> StepValues:
    """Add operations to the current program that keep scalars, float32, and count the steps in which all are finite.

    Its startup program sets the counts to 0. They are float32 too, and exact up to 16 million steps.
    """
    # Private in Paddle (3.3.1), and used by its optimizers; the public `create_global_var` fails in its new
    # intermediate representation (PIR).
    kept = create_persistable_value("float32", [len(values) + 2], name=STEP_VALUES, initializer=Constant(0.0))
    kept.stop_gradient = True
    news = paddle.stack([value.detach().reshape([]) for value in values.values()])
    steps, finite_steps = kept[-2], kept[-1]
    is_next = paddle.isfinite(news).all().astype("float32") * (steps == finite_steps).astype("float32")
    counts = paddle.stack([steps + 1, finite_steps + is_next])
    paddle.assign(paddle.concat([news, counts]), kept)
    return StepValues(tuple(values))
