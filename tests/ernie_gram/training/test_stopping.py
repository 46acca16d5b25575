"""All ranks end after the same step, for each signal that one of them may get."""

from __future__ import annotations

import signal
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ernie_gram.run import termination
from ernie_gram.training import stopping


@pytest.mark.parametrize("number", [None, *termination.SIGNALS], ids=str)
def test_each_signal_of_one_rank_ends_all(number: signal.Signals | None, monkeypatch: pytest.MonkeyPatch) -> None:
    world: Any = SimpleNamespace(size=2)
    executor: Any = None
    for own, other in ((number, None), (None, number)):
        others = np.array([*(other == each for each in termination.SIGNALS), 0.5])
        monkeypatch.setattr(termination, "requested", lambda own=own: own)
        monkeypatch.setattr(stopping, "sum_array", lambda _, array, __, others=others: array + others)
        assert stopping.StopAgreement(executor, world, 0).signal_now(3) == number
