"""A fixture that many of these tests share: the place of a pretended GPU."""

from __future__ import annotations

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
    return start_world("gpu").place
