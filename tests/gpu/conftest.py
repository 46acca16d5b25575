"""The folder of the runs, and the mark of every test here."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.made_once import made_once


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip the tests of GPUs unless they are asked for."""
    for item in items:
        if item.get_closest_marker("gpu") and "gpu" not in config.getoption("-m"):
            item.add_marker(pytest.mark.skip(reason="runs in `make gpu-check`"))


@pytest.fixture(scope="session")
def folder(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with corpus/, for runs that tests share."""
    return made_once(tmp_path_factory, "gpu", lambda folder: (folder / "corpus").symlink_to(built / "corpus"))
