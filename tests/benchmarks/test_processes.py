"""The processes of the benchmarks."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from reader.errors import InputError
from tests.benchmarks.processes import run_module


def test_a_process_has_the_number_of_threads_that_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    environments = []

    def run(command: list[str], env: dict[str, str], **_: Any) -> subprocess.CompletedProcess[str]:
        environments.append(env)
        return subprocess.CompletedProcess(command, 0, 'a line\n{"cpu": 1.5}\n')

    monkeypatch.setattr(subprocess, "run", run)
    # As Paddle sets it when it is loaded.
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert run_module(sys.executable, "module", [], threads=3) == {"cpu": 1.5}
    assert environments[0]["OMP_NUM_THREADS"] == "3"


def test_a_process_that_fails_is_named() -> None:
    with pytest.raises(InputError, match=r"-m tests\.no_module 7: failed"):
        run_module(sys.executable, "tests.no_module", [7], threads=1)
