"""Where compiled functions are cached."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from reader.system.compiled import cache_folder
from tests.support.commands import ROOT, python

UNWRITABLE = Path("/dev/null/package/numba_1")


def test_an_unwritable_folder_is_replaced_by_a_temporary_one_that_nobody_else_can_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    private = tmp_path / f"ernie_gram_{os.getuid()}"
    assert cache_folder(UNWRITABLE) == str(private / "numba_1")
    assert private.stat().st_mode & 0o777 == 0o700
    assert capsys.readouterr().err == ""
    private.chmod(0o777)
    assert cache_folder(UNWRITABLE) == ""
    assert "other users can write to it" in capsys.readouterr().err


def test_a_folder_that_the_user_has_set_is_kept_and_the_environment_stays_as_it_is() -> None:
    code = "import os; before = dict(os.environ)\nfrom reader.system.compiled import numba\n"
    code += "assert os.environ == before; print(numba.config.CACHE_DIR)"
    assert python("-c", code, NUMBA_CACHE_DIR="/somewhere").stdout == "/somewhere\n"
    assert "reader/__pycache__/numba_" in python("-c", code).stdout


def test_the_folder_depends_on_the_sources(tmp_path: Path) -> None:
    """Numba does not recompile a function if a function that it calls from another file changes.

    With a shared cache folder, a function compiled with an old hash would then look in the wrong slots.
    """
    (tmp_path / "reader" / "system").mkdir(parents=True)
    for name in (
        "__init__.py",
        "errors.py",
        *(f"system/{module}.py" for module in ("__init__", "compiled", "progress")),
    ):
        (tmp_path / "reader" / name).write_bytes((ROOT / "reader" / name).read_bytes())
    folders = []
    for content in ("a = 1\n", "a = 2\n", "a = 1\n"):
        (tmp_path / "reader" / "other.py").write_text(content)
        code = "from reader.system.compiled import numba; print(numba.config.CACHE_DIR)"
        command = [sys.executable, "-c", code]
        shown = subprocess.run(command, cwd=tmp_path, env={}, capture_output=True, text=True, check=True)
        folders.append(Path(shown.stdout.strip()))
    assert folders[0] == folders[2] != folders[1]
    assert folders[0].parent == tmp_path / "reader" / "__pycache__"
