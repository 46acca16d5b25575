"""A fixture that many of these tests share: the place of a pretended GPU."""

from __future__ import annotations

import traceback
from typing import Any

import pytest

from ernie_gram.distributed.world import start_world
from tests.support.pretended_gpu import pretend


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The first of two pretended GPUs; static mode is on."""
    start_world("cpu")
    import paddle

    pretend(2, replace=monkeypatch.setattr)
    # Paddle keeps Python's stack for every operation. Under pytest, stacks are deep, and that takes half of the time.
    monkeypatch.setattr(traceback, "extract_stack", list)
    return paddle.set_device("gpu:0")
