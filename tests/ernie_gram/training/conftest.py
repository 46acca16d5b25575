"""A fixture that the tests of the training loop share: the toy job.

It is loaded before the tests, and imports world.py before Paddle.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ernie_gram.distributed.world import start_world  # import before Paddle: sets the number of threads
from ernie_gram.training.trainer import Trainer
from tests.support.static_programs import fresh_scope
from tests.support.toy_classifier import toy_job


@pytest.fixture
def train(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Return a function that trains the toy job in a folder and returns its console output."""

    def call(folder: Path, **options: object) -> str:
        folder.mkdir(exist_ok=True)
        with fresh_scope():
            Trainer(toy_job(folder, **options), start_world("cpu")).train()  # type: ignore[arg-type]
        return capsys.readouterr().out

    return call
