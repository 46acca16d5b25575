"""A fixture that tests of whole runs share."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest


@pytest.fixture
def run_copy(finished: Path, tmp_path: Path) -> Path:
    """A copy of the folder of the finished run, which a test may change."""
    return Path(shutil.copytree(finished, tmp_path / "run"))
