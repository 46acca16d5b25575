"""A fixture that many of these tests share: the place of a pretended GPU."""

from __future__ import annotations

import traceback
from typing import Any

import pytest

from ernie_gram.distributed import device
from ernie_gram.distributed.world import start_world
from tests.support.pretended_gpu import enter_kernels, pretend


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The first of two pretended GPUs; static mode is on."""
    pretend(2, replace=monkeypatch.setattr)
    enter_kernels()
    # It is set below, and belongs to this test only.
    monkeypatch.setattr(device, "_place", None)
    # Paddle keeps Python's stack for every operation. Under pytest, stacks are deep, and that takes half of the time.
    monkeypatch.setattr(traceback, "extract_stack", list)
    return start_world("gpu").place
