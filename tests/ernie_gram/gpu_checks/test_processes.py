"""Checks that hang, crash or end their process fail with the reason, and no process is left."""

from __future__ import annotations

import os
import sys
import time
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest

from ernie_gram.gpu_checks import processes
from ernie_gram.gpu_checks.check import CHECKS, Check, Failed, Setup, Skipped
from ernie_gram.gpu_checks.worker import result_of
from tests.support.commands import ROOT

# A worker without Paddle. Its checks are named after what they do.
WORKER = """
import json, os, signal, subprocess, sys, time
name, folder, quick, limit = sys.argv[1:]
print(f"{name} {quick} {limit} {os.environ.get('NVIDIA_TF32_OVERRIDE')}", flush=True)
if name == "hangs":
    child = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    open(os.path.join(folder, "child"), "w").write(str(child.pid))
    time.sleep(1000)
if name == "crashes":
    os.kill(os.getpid(), signal.SIGSEGV)
if name == "ends":
    sys.exit("no memory")
status = "FAIL" if name == "fails" else "PASS"
with open(os.path.join(folder, f"{name}.json"), "w") as file:
    json.dump(dict(name=name, status=status, reason="", seconds=0.0, numbers={"own": 1}), file)
"""


@pytest.fixture
def worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gpu_check_worker.py").write_text(WORKER)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), str(ROOT)]))
    monkeypatch.setattr(processes, "WORKER", "gpu_check_worker")


def test_checks_that_end_or_stop_their_process_fail(worker: None, tmp_path: Path) -> None:
    results = {
        name: processes.run_check(Check(name, "", 3, {"NVIDIA_TF32_OVERRIDE": "0"}), tmp_path, quick=True, limit=0)
        for name in ("passes", "hangs", "crashes", "ends", "fails")
    }
    assert {name: (result.status, result.reason) for name, result in results.items()} == {
        "passes": ("PASS", ""),
        "hangs": ("FAIL", "no result after 3 s; its process was ended"),
        "crashes": ("FAIL", "its process was killed by SIGSEGV: crashes 1 3 0"),
        "ends": ("FAIL", "its process ended with status 1: no memory"),
        "fails": ("FAIL", ""),
    }
    assert results["hangs"].numbers["log"][-1] == "hangs 1 3 0"
    assert results["fails"].numbers == {"own": 1, "log": ["fails 1 3 0"]}
    assert results["passes"].numbers == {"own": 1}
    child = Path(f"/proc/{(tmp_path / 'child').read_text()}/stat")
    deadline = time.monotonic() + 10
    while child.exists() and child.read_text().rpartition(")")[2].split()[0] != "Z" and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not child.exists() or child.read_text().rpartition(")")[2].split()[0] == "Z"


def test_what_a_check_raises_becomes_its_result(monkeypatch: pytest.MonkeyPatch) -> None:
    def outcome(error: Exception | None) -> tuple[str, str]:
        def device(setup: Setup) -> str:
            if error:
                raise error
            return "good"

        monkeypatch.setitem(sys.modules, "ernie_gram.gpu_checks.device", SimpleNamespace(device=device))
        result = result_of(CHECKS[0], Setup(Path(), quick=True, limit=1))
        return result.status, result.reason

    paddle_error = RuntimeError(
        "\n-----\nC++ Traceback\n1 2\n-----\nError Message Summary:\n----\nOut of memory\n on GPU"
    )
    assert outcome(None) == ("PASS", "good")
    assert outcome(Failed("bad")) == ("FAIL", "bad")
    assert outcome(Skipped("no GPU")) == ("SKIPPED", "no GPU")
    status, reason = outcome(paddle_error)
    assert status == "FAIL"
    assert reason.startswith("RuntimeError: Out of memory on GPU (test_processes.py:")


def test_every_check_of_the_catalog_has_a_documented_function() -> None:
    for check in CHECKS:
        assert getattr(import_module(f"ernie_gram.gpu_checks.{check.module}"), check.name).__doc__
