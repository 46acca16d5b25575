"""Trainings of a sweep: how many at a time, their shares of cores and GPUs, failed runs, and processes that end."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from reader.errors import InputError
from reader.system.processes import available_cores
from tasks.sweeps import training
from tasks.sweeps.runs import PlannedRun
from tasks.sweeps.training import CONSOLE, train_all
from tests.support.commands import ROOT, is_alive, kill_when, wait_for

PROGRAM = """
import subprocess, sys
sys.exit(subprocess.run(["sh", "-c", f"cd {sys.argv[1]}; {sys.argv[2]}"]).returncode)
"""


@pytest.fixture(autouse=True)
def _shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module that runs a script of the shell in a folder, and one that sleeps."""
    (tmp_path / "shell_of_the_test.py").write_text(PROGRAM)
    (tmp_path / "sleeper_of_the_test.py").write_text(SLEEPER)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(training, "POLL_SECONDS", 0.05)


def planned(folder: Path, script: str) -> PlannedRun:
    return PlannedRun(folder, {}, {"seed": 1}, ("shell_of_the_test", str(folder), script), None)


def ended(run: PlannedRun) -> str | None:
    path = run.folder / "result"
    return f"score {float(path.read_text())}" if path.is_file() else None


def train(folder: Path, jobs: int, processes: int = 1, **scripts: str) -> list[str]:
    return train_all([planned(folder / name, script) for name, script in scripts.items()], jobs, processes, ended)


def test_runs_that_fail_are_named_and_stop_no_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad, crash = "echo one; echo 'error: bad'; echo end; exit 3", "echo 1 > result; exit 4"
    failed = train(tmp_path, 1, 2, a=bad, b="echo $NPROC $OMP_NUM_THREADS; echo 1 > result", c=crash, d="echo nothing")
    reasons = {"a": "error: bad", "c": "no output", "d": "nothing"}
    assert failed == [f"{tmp_path / name / CONSOLE}: the run failed: {reason}" for name, reason in reasons.items()]
    assert "done  b: score 1.0" in capsys.readouterr().out
    assert (tmp_path / "b" / CONSOLE).read_text().strip() == f"2 {max(1, available_cores() // 2)}"


def test_fewer_runs_than_jobs_have_more_threads_each(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(training, "available_cores", lambda: 12)
    assert not train(tmp_path, 4, a="echo $OMP_NUM_THREADS > result", b="echo $OMP_NUM_THREADS > result")
    assert {(tmp_path / name / "result").read_text() for name in "ab"} == {"6\n"}


def test_the_error_of_an_earlier_attempt_is_not_that_of_the_last_one(tmp_path: Path) -> None:
    [earlier], [last] = (train(tmp_path, 1, a=script) for script in ("echo 'error: a wrong path'; exit 2", "exit 1"))
    assert earlier.endswith("error: a wrong path")
    assert last.endswith("no output")


def test_runs_at_the_same_time_see_gpus_of_their_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    there = 4
    monkeypatch.setattr(training, "visible_gpus", lambda: there)

    def seen(jobs: int, ranks: int) -> list[str | None]:
        return [share.get("CUDA_VISIBLE_DEVICES") for share in training.shares_of_gpus(jobs, ranks)]

    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert seen(2, 1) == ["0", "1"]
    assert seen(2, 2) == ["0,1", "2,3"]
    assert seen(3, 2) == ["0,1", "2,3", "0,1"]
    assert seen(1, 2) == [None]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5,GPU-a7,2,3")
    assert seen(2, 1) == ["5", "GPU-a7"]
    there = 0
    assert seen(2, 1) == [None, None]
    there = 2
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    show = "echo $CUDA_VISIBLE_DEVICES > result"
    assert not train(
        tmp_path, 2, a=f"{show}; until [ -e ../c/end ]; do sleep 0.05; done", b=show, c=f"{show}; touch end"
    )
    assert [(tmp_path / name / "result").read_text().strip() for name in "abc"] == ["0", "1", "1"]


def gone(pid: Path) -> bool:
    return wait_for(lambda: not is_alive(int(pid.read_text())), 10)


PARENT = """
import os, sys
from pathlib import Path
from tasks.sweeps.runs import PlannedRun
from tasks.sweeps.training import train_all
HOOK
folder = Path(sys.argv[1])
run = PlannedRun(folder, {}, {"seed": 1}, ("sleeper_of_the_test", str(folder / "pid")), None)
train_all([run], 1, 1, lambda _: None)
"""
SLEEPER = "import os, sys, time\nopen(sys.argv[1], 'w').write(str(os.getpid()))\ntime.sleep(60)\n"


def test_an_error_of_the_caller_stops_the_runs(tmp_path: Path) -> None:
    def damaged(run: PlannedRun) -> str | None:
        raise InputError("damaged")

    pid = tmp_path / "pid"
    long = PlannedRun(tmp_path / "long", {}, {}, ("sleeper_of_the_test", str(pid)), None)
    with pytest.raises(InputError, match="damaged"):
        train_all([long, planned(tmp_path / "b", f"until [ -s {pid} ]; do sleep 0.02; done")], 2, 1, damaged)
    assert gone(pid)


@pytest.mark.parametrize("hook", ["", "os.register_at_fork(after_in_parent=lambda: os.kill(os.getpid(), 15))"])
def test_sigterm_ends_the_runs(tmp_path: Path, hook: str) -> None:
    """Python drops an exception that the handler of a signal raises in a hook of a fork."""
    pid = tmp_path / "run" / "pid"
    program = PARENT.replace("HOOK", hook)
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{tmp_path}"}
    command = [sys.executable, "-c", program, str(tmp_path / "run")]
    with subprocess.Popen(command, cwd=ROOT, env=environment) as process:
        while process.poll() is None and not (pid.is_file() and pid.read_text()):
            time.sleep(0.02)
        if not hook:
            process.terminate()
    assert process.returncode == 143
    assert not pid.is_file() or gone(pid)


def test_a_killed_process_leaves_no_run_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}:{tmp_path}")
    pid = tmp_path / "run" / "pid"
    # Only the process that started the run is killed, not its group.
    program = PARENT.replace("HOOK", "").replace("sys.argv[1]", repr(str(tmp_path / "run")))
    script = f"import os, subprocess, sys, time\np = subprocess.Popen([sys.executable, '-c', {program!r}])\n"
    script += f"while not os.path.isfile({str(pid)!r}): time.sleep(0.01)\np.kill(); p.wait(); time.sleep(60)\n"
    kill_when(["-c", script], lambda: pid.is_file() and pid.read_text() and not is_alive(int(pid.read_text())))
    assert gone(pid)
