"""The processes that the launcher waits for: their errors and signals, and the options of Paddle's launcher."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ernie_gram.distributed import launcher
from ernie_gram.distributed.launcher import _value, _with_address_of_master, launch
from reader.errors import InputError
from tests.support.commands import ROOT

# A check of the input that is interrupted, as `run_command` would end it.
CHILD = (
    "import os, signal, sys, time\n"
    "signal.signal(signal.SIGINT, lambda *_: (os.write(2, b'error: interrupted\\n'), os._exit(130)))\n"
    "print(os.getpid(), file=sys.stderr, flush=True)\n"
    "time.sleep(300)\n"
)
PARENT = (
    "import signal\n"
    "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    "from ernie_gram.distributed.launcher import _run\n"
    "from reader.errors import one_line_errors\n"
    f"one_line_errors(lambda: _run('-c', {CHILD!r}))\n"
)


def waiting() -> tuple[subprocess.Popen[str], int]:
    """Return a launcher that waits for a check of the input, and the process of that check."""
    process = subprocess.Popen(
        [sys.executable, "-c", PARENT], cwd=ROOT, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stderr is not None
    return process, int(process.stderr.readline())


def test_an_interrupt_while_the_input_is_checked_is_one_line() -> None:
    process, _ = waiting()
    os.killpg(process.pid, signal.SIGINT)
    assert process.communicate(timeout=60)[1] == "error: interrupted\n"
    assert process.returncode == 130


def test_the_check_of_the_input_ends_with_a_killed_launcher() -> None:
    process, child = waiting()
    process.kill()
    process.wait()
    deadline = time.monotonic() + 60
    while Path(f"/proc/{child}/cmdline").exists() and Path(f"/proc/{child}/cmdline").read_bytes():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_failed_check_ends_the_launcher_with_its_status() -> None:
    with pytest.raises(SystemExit) as ended:
        launcher._run("-c", "exit(7)")
    assert ended.value.code == 7
    with pytest.raises(SystemExit) as ended:
        launcher._run("-c", "import os; os.kill(os.getpid(), 9)")
    assert ended.value.code == 137
    assert launcher._run("-c", "import os; print(os.environ['MORE'])", MORE="yes") == "yes\n"


@pytest.mark.parametrize(
    ("given", "key"),
    [
        *(("--nnodes 2 --rank x", "--rank x"), ("--nnodes=two --rank 1", "--nnodes two"), ('--master "h:1', "")),
        *(("--nnodes 0", "--nnodes 0"), ("--nnodes 2 --rank 2", "--rank 2"), ("--nnodes=2:4 --rank=1", "--nnodes 2:4")),
        *(("--rank 1", "--rank 1"), ("--nnode 4", "--nnode: "), ("script.py", "script.py"), ("--rank 0 --nnodes", "")),
        *(("--nproc_per_node=9", "--nproc_per_node"), ("--nnodes 2 --rank 1", "--nnodes 2")),
    ],
)
def test_wrong_launch_arguments_are_named(given: str, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", {"LAUNCH_ARGS": given})
    with pytest.raises(InputError, match=f"^LAUNCH_ARGS: {key}"):
        launcher._launch_arguments()
    monkeypatch.setattr(os, "environ", {"LAUNCH_ARGS": "--nnodes=4 --rank 3 --master h:1"})
    assert launcher._launch_arguments() == ["--nnodes=4", "--rank", "3", "--master", "h:1"]


def test_each_task_of_a_job_step_is_a_machine_and_the_port_depends_on_the_job(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    variables = {"STEP_NUM_TASKS": "2", "JOB_NUM_NODES": "2", "STEP_NODELIST": "node[3-4]", "PROCID": "1"}
    of_slurm = {f"SLURM_{name}": value for name, value in {**variables, "STEP_ID": "5"}.items()}
    for name, value in (("SLURM_STEP_NODELIST", ""), ("SLURM_STEP_NUM_TASKS", "two")):
        monkeypatch.setattr(os, "environ", {**of_slurm, name: value})
        with pytest.raises(InputError, match=name):
            launcher._options_of_slurm(1)
    monkeypatch.setattr(os, "environ", {**of_slurm, "PATH": str(tmp_path)})
    for job, port in (("123", 20128), ("124", 20129), ("19999", 20004)):
        monkeypatch.setenv("SLURM_JOB_ID", job)
        with pytest.raises(InputError, match=r"^SLURM_STEP_NODELIST: .*node\[3-4\]"):
            launcher._options_of_slurm(1)
        (tmp_path / "scontrol").write_text('#!/bin/sh\n[ "$3" = "node[3-4]" ] && echo node3 && echo node4\n')
        (tmp_path / "scontrol").chmod(0o755)
        expected = ["--master", f"node3:{port}", "--nnodes", "2", "--rank", "1"]
        assert launcher._options_of_slurm(1) == expected
        (tmp_path / "scontrol").unlink()


def test_the_first_machine_has_the_address_of_the_master() -> None:
    for given in (["--master=localhost:5", "--rank=0"], ["--master", "localhost:5", "--rank", "0"]):
        found = _with_address_of_master(given)
        assert found[:2] == ["--host", "127.0.0.1"]
        assert [_value(found, name) for name in ("--master", "--rank")] == ["127.0.0.1:5", "0"]
    for other in (["--master", "127.0.0.1:5", "--rank", "1"], []):
        assert _with_address_of_master(other) == other
    for wrong in ("localhost", "localhost:99999", "localhost:port", "etcd://host"):
        with pytest.raises(InputError, match=rf"^LAUNCH_ARGS: --master {wrong}: must be HOST:PORT$"):
            _with_address_of_master(["--master", wrong])


def test_without_a_gpu_one_process_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", {"NPROC": ""})
    for counted, processes in (("0\n", 1), ("3\n", 3)):
        monkeypatch.setattr(launcher, "_run", lambda *_, counted=counted: counted)
        assert launcher._processes() == processes


def test_a_single_process_replaces_this_one_and_checks_its_input_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[tuple[str, ...]] = []

    def replace(*arguments: str) -> None:
        started.append((*arguments, os.environ["GLIBC_TUNABLES"] if "--help" not in arguments else ""))
        raise SystemExit

    monkeypatch.setattr(launcher, "_replace", replace)
    monkeypatch.setattr(launcher, "_run", lambda *arguments, **_: started.append(arguments))
    monkeypatch.setattr(os, "environ", {"NPROC": "1"})
    run = ("-m", "tasks.finetune", "--seed", "2")
    with pytest.raises(SystemExit):
        launch("tasks.finetune", run[2:])
    assert started == [(*run, launcher.MEMORY)]
    # Help needs neither a check nor a number of processes.
    monkeypatch.setattr(os, "environ", {"NPROC": "many"})
    with pytest.raises(SystemExit):
        launch("tasks.finetune", ["--help"])
    assert started[-1] == ("-m", "tasks.finetune", "--help", "")


def test_check_is_run_by_one_process_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    checked: list[dict[str, str]] = []

    def run(*arguments: str, **environment: str) -> str:
        assert arguments[-1] == "--check"
        checked.append(environment)
        return "all is valid\n"

    monkeypatch.setattr(launcher, "_run", run)
    monkeypatch.setattr(launcher, "_replace", lambda *_: pytest.fail("the processes were started"))
    monkeypatch.setattr(os, "environ", {"NPROC": "2"})
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        launch("tasks.finetune", ["--seed", "2", "--check"])
    assert ended.value.code is None
    assert capsys.readouterr().out == "all is valid\n"
    assert list(tmp_path.iterdir()) == []
    (environment,) = checked
    assert environment["PADDLE_TRAINERS_NUM"] == "2"
    # Nothing follows that would print the warnings, or read what was prepared.
    assert not environment.keys() & {"NO_WARNINGS", launcher.WRITE}


def test_a_folder_for_logs_that_cannot_be_written_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launcher, "_replace", lambda *_: pytest.fail("the processes were started"))
    (tmp_path / "file").touch()
    for folder in (tmp_path / "file" / "log", tmp_path / "mnt" / "log"):
        monkeypatch.setattr(os, "environ", {"LOG_DIR": str(folder)})
        with pytest.raises(InputError, match=r"^LOG_DIR: "):
            launcher.start_ranks("script.py", [], 2)
    assert not (tmp_path / "mnt").exists()
