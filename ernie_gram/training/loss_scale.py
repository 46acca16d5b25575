"""Adapt the scale of the loss, and skip updates whose gradient is not finite.

Gradients of float16 products underflow unless the loss is scaled up; scaled too far, they overflow. So the scale is
dynamic: it halves at an overflow, and doubles after a number of good updates in a row. Nothing of this depends on the
precision. All ranks have the same sums of losses and gradients, so all of them skip the same updates.
"""

from __future__ import annotations

import numpy as np
import paddle

from ernie_gram.training.config import LOSS_SCALE_STEPS, OptimizerConfig
from ernie_gram.training.variables import get_arrays, persistent, set_array, shared

# A variable of the scope, float32 [4], which counts exactly up to 2^24: the scale of the next update; updates since the
# scale changed or one was skipped; skipped updates, of the whole run and in a row.
NAME = "update_guard"
STATE = ("loss_scale", "good_steps", "skipped", "skipped_in_a_row")
# With a smaller scale float16 gains nothing, and gradients that still overflow are wrong for another reason.
MIN_SCALE = 1.0


class UpdateGuard:
    """Operations that skip an update, for the program that is being built.

    Attributes:
        loss_scale: float32 scalar.
    """

    def __init__(self, first_scale: float, is_made_elsewhere: bool = False) -> None:
        """`is_made_elsewhere` is true for the second program of a training, which shares the state of the first."""
        start = np.array([first_scale, 0, 0, 0], np.float32)
        self._state = shared(NAME, [len(start)]) if is_made_elsewhere else persistent(NAME, start)
        self.loss_scale = self._state[0]

    @classmethod
    def of(cls, settings: OptimizerConfig, is_made_elsewhere: bool = False) -> UpdateGuard | None:
        """Return the guard of a training; None if its loss is not scaled."""
        first = settings.first_loss_scale
        return None if first is None else cls(first, is_made_elsewhere)

    def judge(self, loss: paddle.Tensor, norm: paddle.Tensor) -> tuple[paddle.Tensor, dict[str, paddle.Tensor]]:
        """Return whether to make an update, and update the state.

        Args:
            loss, norm: of all ranks, scalars.
        Returns:
            Whether both are finite, a bool scalar; and fields of the new state, to be fetched: `loss_scale`, `skipped`
            and `skipped_in_a_row`.
        """
        is_good = paddle.isfinite(loss) & paddle.isfinite(norm)
        good = is_good.astype("float32")
        scale, steps, skipped, in_a_row = (self._state[i] for i in range(4))
        steps = (steps + 1) * good
        grows = (steps >= LOSS_SCALE_STEPS).astype("float32")
        factor = good * (1 + grows) + (1 - good) * 0.5
        scale = paddle.clip(scale * factor, min=MIN_SCALE)
        steps = steps * (1 - grows)
        skipped, in_a_row = skipped + 1 - good, (in_a_row + 1) * (1 - good)
        new = paddle.stack([scale, steps, skipped, in_a_row])
        paddle.assign(new, self._state)
        return is_good, {"loss_scale": new[0], "skipped": new[2], "skipped_in_a_row": new[3]}


def guard_state() -> dict[str, float]:
    """Return the state in the scope for a checkpoint: STATE by name."""
    return dict(zip(STATE, get_arrays([NAME])[NAME].tolist(), strict=True))


def set_guard_state(state: dict[str, float]) -> None:
    """Set the state in the scope to that of a checkpoint."""
    set_array(NAME, np.array([state[name] for name in STATE], np.float32))
