"""Checks that hang, crash or end their process fail, the others go on, and no process is left."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from ernie_gram.gpu_checks import runner
from ernie_gram.gpu_checks.catalog import CHECKS, Check
from ernie_gram.gpu_checks.outcome import Failed, Passed, Setup, Skipped
from ernie_gram.gpu_checks.worker import result_of
from tests.support.commands import ROOT

# A worker without Paddle. Its checks are named after what they do.
WORKER = """
import json, os, signal, subprocess, sys, time
results, folder, quick, limit, *names = sys.argv[1:]
for name in names:
    print(f"{name} {quick} {limit} {os.environ.get('NVIDIA_TF32_OVERRIDE')}", flush=True)
    if name.startswith("hangs"):
        child = subprocess.Popen(["sleep", "1000"], start_new_session=True)
        open(os.path.join(folder, "child"), "w").write(str(child.pid))
        time.sleep(1000)
    if name.startswith("crashes"):
        os.kill(os.getpid(), signal.SIGSEGV)
    if name.startswith("ends"):
        sys.exit("no memory")
    status = "FAIL" if name.startswith("fails") else "PASS"
    with open(results, "a") as file:
        file.write(json.dumps(dict(name=name, status=status, reason="", seconds=0.0, figures={"own": 1})) + "\\n")
"""


@pytest.fixture
def worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gpu_check_worker.py").write_text(WORKER)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), str(ROOT)]))
    monkeypatch.setattr(runner, "WORKER", "gpu_check_worker")


def test_checks_that_end_or_stop_their_process_fail_and_the_others_go_on(worker: None, tmp_path: Path) -> None:
    names = ["passes", "hangs", "passes too", "crashes", "ends", "fails"]
    checks = [Check(name, "", "numbers", 60) for name in names] + [Check("passes again", "", "kernels", 60)]
    results = {result.name: result for result in runner.run_checks(checks, tmp_path, quick=True, limit=3)}
    assert list(results) == [*names, "passes again"]
    found = {name: (result.status, result.reason) for name, result in results.items()}
    assert found == {
        "passes": ("PASS", ""),
        "hangs": ("FAIL", "no result after 3 s; its process was ended"),
        "passes too": ("PASS", ""),
        "crashes": ("FAIL", "its process was killed by SIGSEGV: crashes 1 3 0"),
        "ends": ("FAIL", "its process ended with status 1: no memory"),
        "fails": ("FAIL", ""),
        "passes again": ("PASS", ""),
    }
    assert results["hangs"].figures["log"][-1] == "hangs 1 3 0"
    assert results["fails"].figures == {"own": 1, "log": ["fails 1 3 0"]}
    assert results["passes again"].figures == {"own": 1}
    child = Path(f"/proc/{(tmp_path / 'child').read_text()}/stat")
    deadline = time.monotonic() + 10
    while child.exists() and child.read_text().rpartition(")")[2].split()[0] != "Z" and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not child.exists() or child.read_text().rpartition(")")[2].split()[0] == "Z"


def test_what_a_check_raises_becomes_its_result(monkeypatch: pytest.MonkeyPatch) -> None:
    setup, made = Setup(Path(), quick=True, limit=1), Check("device", "device", "kernels", 60)

    def outcome(error: Exception | None) -> tuple[str, str]:
        def function(setup: Setup) -> Passed:
            if error:
                raise error
            return Passed("good", {"seconds": 2})

        monkeypatch.setattr(Check, "function", lambda self: function)
        result = result_of(made, setup)
        return result.status, result.reason

    paddle_error = RuntimeError(
        "\n-----\nC++ Traceback\n1 2\n-----\nError Message Summary:\n----\nOut of memory\n on GPU"
    )
    assert outcome(None) == ("PASS", "good")
    assert outcome(Failed("bad")) == ("FAIL", "bad")
    assert outcome(Skipped("no GPU")) == ("SKIPPED", "no GPU")
    status, reason = outcome(paddle_error)
    assert status == "FAIL"
    assert reason.startswith("RuntimeError: Out of memory on GPU (test_runner.py:")


def test_every_check_of_the_catalog_has_a_documented_function() -> None:
    assert all(check.function().__doc__ for check in CHECKS)
