"""What follows from losses and gradients that are not finite: training stops, or says which update was skipped."""

from __future__ import annotations

import math
from collections.abc import Mapping

from ernie_gram.training.config import TrainerConfig

Values = Mapping[str, float]


def reason_to_stop(values: Values, settings: TrainerConfig) -> str:
    """Return why training must stop after a step, or "".

    `values` are the fetches of the step (see program.build_training). With `skipped` among them, the program has
    skipped the update if they are not finite.
    """
    can_skip = "skipped" in values
    in_a_row = values.get("skipped_in_a_row", 0)
    if in_a_row >= settings.max_skipped:
        return f"{in_a_row:.0f} updates in a row were skipped (trainer.max_skipped), {_described(values)}"
    # A scale of the loss is only to blame for a gradient.
    tolerated = can_skip and (settings.not_finite == "skip" or math.isfinite(values["loss"]))
    is_finite = math.isfinite(values["loss"]) and math.isfinite(values["grad_norm"])
    return "" if is_finite or tolerated else _described(values)


def skip_message(step: int, values: Values) -> str:
    """Return the line for the console that says that an update was skipped."""
    scale = f"; the loss is now scaled by {values['loss_scale']:g}" if "loss_scale" in values else ""
    return f"step {step}: update skipped, {_described(values)}; {values['skipped']:.0f} skipped so far{scale}"


def logged_values(values: Values) -> dict[str, float]:
    """Return the values for the log: those that are finite, without `skipped_in_a_row`."""
    return {name: value for name, value in values.items() if math.isfinite(value) and name != "skipped_in_a_row"}


def _described(values: Values) -> str:
    return f"the loss is {values['loss']}, its gradient {values['grad_norm']}"
