"""The environment variable DATA stands for a missing --data, in every command that has this option."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from tests.support.commands import call

COMMANDS = {
    "tasks.check_files": ["cola"],
    "tasks.predict": ["run", "--output", "out"],
    "tasks.score": ["cola", "predictions.tsv"],
    "tasks.sweep": ["cola", "model", "--output", "out"],
}
MISSING = "--data"


@pytest.mark.parametrize("module", COMMANDS)
def test_the_variable_stands_for_a_missing_option(module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    main = importlib.import_module(module).main
    monkeypatch.chdir(tmp_path)
    without = call(main, *COMMANDS[module])
    assert (without.returncode, MISSING in without.stderr) == (2, True), without.stderr
    monkeypatch.setenv("DATA", str(tmp_path))
    given = call(main, *COMMANDS[module])
    assert (given.returncode, MISSING in given.stderr) == (2, False), given.stderr
