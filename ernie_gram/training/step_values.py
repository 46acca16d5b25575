"""Keep the logged values of a training step on the device until they are read, and tell whether training must stop.

A fetch would make the host wait for the GPU at every step, and with another set of fetches Paddle would prepare the
program a second time. So the program writes the values into one small variable, and adds up the losses in another.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np
import paddle

from ernie_gram.paddle_private import add_
from ernie_gram.run.run_log import LOSS_STEPS
from ernie_gram.training.config import TrainerConfig
from ernie_gram.training.variables import get_arrays, set_array, zeros

Values = Mapping[str, float]
# The names of the variables. The second has the sum of each loss, and the number of steps.
STEP_VALUES, LOSS_SUMS = "step_values", "loss_sums"


def read_step_values(names: Iterable[str]) -> tuple[dict[str, float], int]:
    """Return the values of the last step, by their names, and the number of steps since the program was started.

    If training must stop after a step, it is the first of these. Waits until the device has finished the last step.
    """
    *values, steps, _ = get_arrays([STEP_VALUES])[STEP_VALUES].tolist()
    return dict(zip(names, values, strict=True)), int(steps)


def add_step_values(values: dict[str, paddle.Tensor], must_stop: paddle.Tensor) -> None:
    """Add operations to the current program that keep the values of each step, until a step with `must_stop`.

    Args:
        values: scalars, kept as float32.
        must_stop: bool scalar, whether training must stop after this step.

    The startup program forgets everything. The number of steps is a float32 too, and exact up to 16 million.
    """
    kept = zeros(STEP_VALUES, [len(values) + 2])
    scalars = paddle.stack([value.detach().astype("float32").reshape([]) for value in values.values()])
    new = paddle.concat([scalars, kept[-2:-1] + 1, must_stop.astype("float32").reshape([1])])
    paddle.assign(paddle.where(kept[-1:] > 0, kept, new), kept)


def add_loss_sums(losses: paddle.Tensor) -> None:
    """Add operations to the current program that add up the losses of each step; see `take_mean_losses`.

    Args:
        losses: float32 [L]. A step does not count unless all of them are finite.
    """
    new = paddle.concat([losses.detach(), paddle.ones([1])])
    add_(zeros(LOSS_SUMS, new.shape), paddle.where(paddle.isfinite(new).all(), new, paddle.zeros_like(new)))


def take_mean_losses(names: Iterable[str]) -> dict[str, float]:
    """Return the mean of each loss over the steps that count, and their number, and start anew.

    Args:
        names: of the losses; others may follow.
    """
    *sums, steps = loss_sums()
    set_loss_sums([0.0] * (len(sums) + 1))
    means = {name: total / steps for name, total in zip(names, sums, strict=False)} if steps else {}
    return {**means, LOSS_STEPS: int(steps)}


def loss_sums() -> list[float]:
    """Return the sums of the losses since `take_mean_losses`, and the number of steps."""
    return get_arrays([LOSS_SUMS])[LOSS_SUMS].tolist()


def set_loss_sums(sums: list[float]) -> None:
    """Set what `loss_sums` returns, such as that of a checkpoint."""
    set_array(LOSS_SUMS, np.array(sums, np.float32))


def not_finite(*values: paddle.Tensor) -> paddle.Tensor:
    """Return whether any of the scalars is not finite, a bool scalar."""
    return paddle.logical_not(paddle.isfinite(paddle.stack([value.detach().reshape([]) for value in values])).all())


def reason_to_stop(values: Values, settings: TrainerConfig) -> str:
    """Return why training must stop after a step, or "".

    `values` are the fetches of the step (see program.build_training). If `skipped` is among them, the loss is scaled,
    and the program has skipped the update if they are not finite.
    """
    in_a_row = values.get("skipped_in_a_row", 0)
    if in_a_row >= settings.max_skipped:
        return f"{in_a_row:.0f} updates in a row were skipped (trainer.max_skipped), {_described(values)}"
    # A scale of the loss is only to blame for a gradient.
    is_tolerated = math.isfinite(values["loss"]) and ("skipped" in values or math.isfinite(values["grad_norm"]))
    return "" if is_tolerated else _described(values)


def skip_message(step: int, values: Values) -> str:
    """Return the line for the console that says that an update was skipped."""
    scale = f"the loss is now scaled by {values['loss_scale']:g}"
    return f"step {step}: update skipped, {_described(values)}; {values['skipped']:.0f} skipped so far; {scale}"


def logged_values(values: Values) -> dict[str, float]:
    """Return the values for the log: those that are finite, without `skipped_in_a_row`."""
    return {name: value for name, value in values.items() if math.isfinite(value) and name != "skipped_in_a_row"}


def _described(values: Values) -> str:
    return f"the loss is {values['loss']}, its gradient {values['grad_norm']}"
