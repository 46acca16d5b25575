"""Fixtures of the tests of tasks."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.made_once import made_once
from tests.support.tiny_task import finetune, make_task


@pytest.fixture(scope="session")
def tiny_task(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with model/ and data/, see tests/support/tiny_task.py. Read only."""
    return made_once(tmp_path_factory, "tiny_task", make_task)


@pytest.fixture(scope="session")
def finetuned(tiny_task: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished fine-tuning. Tests must not change it."""

    def make(folder: Path) -> None:
        done = finetune(tiny_task, folder / "run")
        assert done.returncode == 0, done.stderr
        (folder / "console").write_text(done.stdout)

    return made_once(tmp_path_factory, "finetuned", make) / "run"
