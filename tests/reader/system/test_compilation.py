"""The line about compilation is printed once, and only if a function is compiled and not loaded from the cache."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numba
import pytest

from reader import build
from reader.system.compilation import MESSAGE, announced_compilation
from tests.support.commands import call

SOURCE = "import numba\n\n@numba.njit(cache=True)\ndef add(a, b):\n    return a + b\n"


@pytest.fixture
def compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that imports a module with a compiled function anew, as a new process would."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "compiled_module.py"
    path.write_text(SOURCE)

    def load() -> Any:
        spec = importlib.util.spec_from_file_location("compiled_module", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.add

    return load


def test_one_line_is_printed_only_without_a_cache(compiled: Any, capsys: pytest.CaptureFixture[str]) -> None:
    shown = []
    for _ in range(2):
        add = compiled()
        with announced_compilation():
            assert add(1, 2) == 3
            assert add(1.0, 2) == 3.0  # a second compilation
        shown.append(capsys.readouterr())
    assert [(output.out, output.err) for output in shown] == [("", f"{MESSAGE}\n"), ("", "")]


def test_the_commands_of_the_reader_announce_compilation(
    compiled: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "inspect_lexicon", lambda _: compiled()(1, 2))
    done = [call(build.main, "inspect", str(tmp_path)) for _ in range(2)]
    assert [each.stderr for each in done] == [f"{MESSAGE}\n", ""]
