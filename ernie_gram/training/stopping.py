"""Let all ranks of a job end after the same step, although a signal may reach only one of them."""

from __future__ import annotations

import time

import numpy as np
import paddle

from ernie_gram.distributed.collectives import sum_array
from ernie_gram.distributed.device import World
from ernie_gram.run import termination

# Ranks ask each other about once in this time, and after every step if steps take longer.
EXCHANGE_SECONDS = 1.0
MAX_STEPS_BETWEEN = 1000


class StopAgreement:
    """Tells all ranks, by exchanges between them, whether any rank has been asked to end."""

    def __init__(self, executor: paddle.static.Executor, world: World, step: int) -> None:
        """`step` is that from which training starts or resumes."""
        self._executor, self._world = executor, world
        self._last_step = self._next_step = step
        self._time = time.monotonic()

    def signal_after(self, step: int) -> int | None:
        """Return the signal after which all ranks end at this step, the same on all ranks, or None to go on.

        Every rank calls it after every step. Most calls return None without an exchange.
        """
        if self._world.size == 1:
            return termination.requested()
        return self.signal_now(step) if step >= self._next_step else None

    def signal_now(self, step: int) -> int | None:
        """Return the signal after which all ranks end now, or None; always exchanges."""
        number, now = termination.requested(), time.monotonic()
        own = [*(number == each for each in termination.SIGNALS), now - self._time]
        *asked, seconds = sum_array(self._executor, np.array(own, np.float64), self._world)
        # The sums are those of all ranks, so all of them compute the same next step.
        steps, mean = max(1, step - self._last_step), max(1e-6, seconds / self._world.size)
        self._next_step = step + int(np.clip(EXCHANGE_SECONDS * steps / mean, 1, MAX_STEPS_BETWEEN))
        self._last_step, self._time = step, now
        return next((each for each, times in zip(termination.SIGNALS, asked, strict=True) if times), None)
