"""Where compiled functions are cached if the folder of the package cannot be written."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from reader.system.cache_folder import VARIABLE, set_numba_cache_folder

UNWRITABLE = Path("/dev/null/package/numba_1")


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The system's temporary directory; the variable is not set."""
    monkeypatch.setenv(VARIABLE, "")
    del os.environ[VARIABLE]
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_a_writable_folder_is_used_without_a_message(temporary: Path, capsys: pytest.CaptureFixture[str]) -> None:
    set_numba_cache_folder(temporary / "package" / "numba_1")
    assert os.environ[VARIABLE] == str(temporary / "package" / "numba_1")
    assert capsys.readouterr().err == ""


def test_an_unwritable_folder_is_replaced_by_a_private_temporary_one(
    temporary: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):  # another process, such as the training after --check, prints nothing
        os.environ.pop(VARIABLE, None)
        set_numba_cache_folder(UNWRITABLE)
    folder = temporary / f"ernie_gram_{os.getuid()}" / "numba_1"
    assert os.environ[VARIABLE] == str(folder)
    assert folder.parent.stat().st_mode & 0o777 == 0o700
    (line,) = capsys.readouterr().err.splitlines()
    assert line == f"warning: {UNWRITABLE}: cannot be written; compiled functions are kept in {folder}"


def test_a_temporary_folder_that_others_can_write_is_not_used(
    temporary: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = temporary / f"ernie_gram_{os.getuid()}"
    folder.mkdir()
    folder.chmod(0o777)
    set_numba_cache_folder(UNWRITABLE)
    assert VARIABLE not in os.environ
    assert "other users can write to it" in capsys.readouterr().err


def test_a_folder_that_the_user_has_set_is_kept(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "/somewhere")
    set_numba_cache_folder(UNWRITABLE)
    assert os.environ[VARIABLE] == "/somewhere"
