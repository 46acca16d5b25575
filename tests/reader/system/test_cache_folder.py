"""Where compiled functions are cached if the folder of the package cannot be written."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from reader.system.cache_folder import numba_cache_folder
from tests.support.commands import python

UNWRITABLE = Path("/dev/null/package/numba_1")


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The system's temporary directory."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_a_writable_folder_is_used_without_a_message(temporary: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = temporary / "package" / "numba_1"
    assert numba_cache_folder(folder) == str(folder)
    assert capsys.readouterr().err == ""


def test_an_unwritable_folder_is_replaced_by_a_private_temporary_one(
    temporary: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = temporary / f"ernie_gram_{os.getuid()}" / "numba_1"
    for _ in range(2):  # another process, such as the training after --check, prints nothing
        assert numba_cache_folder(UNWRITABLE) == str(folder)
    assert folder.parent.stat().st_mode & 0o777 == 0o700
    (line,) = capsys.readouterr().err.splitlines()
    assert line == f"warning: {UNWRITABLE}: cannot be written; compiled functions are kept in {folder}"


def test_a_temporary_folder_that_others_can_write_is_not_used(
    temporary: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = temporary / f"ernie_gram_{os.getuid()}"
    folder.mkdir()
    folder.chmod(0o777)
    assert numba_cache_folder(UNWRITABLE) == ""
    assert "other users can write to it" in capsys.readouterr().err


def test_a_folder_that_the_user_has_set_is_kept_and_the_environment_stays_as_it_is() -> None:
    code = "import os; before = dict(os.environ)\nfrom reader.system.compiled import numba\n"
    code += "assert os.environ == before; print(numba.config.CACHE_DIR)"
    assert python("-c", code, NUMBA_CACHE_DIR="/somewhere").stdout == "/somewhere\n"
    assert "reader/__pycache__/numba_" in python("-c", code).stdout
