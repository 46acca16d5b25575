"""A fixture for tests that use Paddle's own writers, which need its dynamic mode."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import ernie_gram.distributed.world  # noqa: F401  import before Paddle: sets the number of threads

import paddle  # isort: skip


@pytest.fixture
def dynamic_mode() -> Iterator[None]:
    """Switch Paddle to dynamic mode, and back to the mode that it was in."""
    was_dynamic = paddle.in_dynamic_mode()
    paddle.disable_static()
    yield
    (paddle.disable_static if was_dynamic else paddle.enable_static)()
