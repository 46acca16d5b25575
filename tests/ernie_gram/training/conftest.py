"""A fixture that the tests of the training loop share: the toy job."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.static_programs import fresh_scope


@pytest.fixture
def train(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Return a function that trains the toy job in a folder and returns its console output."""

    def call(folder: Path, **options: object) -> str:
        from ernie_gram.distributed.world import start_world
        from ernie_gram.training.trainer import Trainer
        from tests.support.toy_classifier import toy_job

        folder.mkdir(exist_ok=True)
        with fresh_scope():
            Trainer(toy_job(folder, **options), start_world("cpu")).train()  # type: ignore[arg-type]
        return capsys.readouterr().out

    return call
