"""The processes that the environment of a command asks for: NPROC, LAUNCH_ARGS, and the variables of Slurm."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ernie_gram.distributed import launcher
from ernie_gram.distributed.launcher import Processes, _with_address, processes_of_job
from reader.errors import InputError
from tests.support.commands import Done, call


@pytest.fixture(autouse=True)
def _no_gpus(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(launcher, "DEVICES", tmp_path)


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, Processes(1, 1, 0, is_launcher=False)),
        ({"NPROC": "1"}, Processes(1, 1, 0, is_launcher=False)),
        ({"NPROC": " 3 "}, Processes(3, 3, 0)),
        (
            {"NPROC": "2", "LAUNCH_ARGS": "--nnodes=4 --rank 3 --master 127.0.0.1:7"},
            Processes(2, 8, 6, 4, 3, "127.0.0.1:7"),
        ),
        # The first machine has the address of the master.
        (
            {"NPROC": "1", "LAUNCH_ARGS": "--nnodes 2 --rank 0 --master localhost:7"},
            Processes(1, 2, 0, 2, 0, "127.0.0.1:7", "127.0.0.1"),
        ),
        (
            {"NPROC": "1", "LAUNCH_ARGS": "--nnodes 2 --rank=1 --master localhost:7 --host 10.0.0.5"},
            Processes(1, 2, 1, 2, 1, "127.0.0.1:7", "10.0.0.5"),
        ),
    ],
)
def test_processes_are_those_of_the_environment(
    environment: dict[str, str], expected: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "environ", environment)
    assert processes_of_job() == expected


def test_a_process_is_started_for_each_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launcher, "visible_gpus", lambda: 3)
    monkeypatch.setattr(os, "environ", {})
    assert processes_of_job() == Processes(3, 3, 0)


@pytest.mark.parametrize(("visible", "is_noted"), [(None, True), ("", False), ("-1", False), ("0,1", True)])
@pytest.mark.parametrize("is_gpu_package", [False, True])
def test_gpus_of_another_package_of_paddle_are_noted_unless_they_are_hidden(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, visible: str | None, is_noted: bool, is_gpu_package: bool
) -> None:
    for name in ("nvidia0", "nvidia1", "nvidiactl"):
        (tmp_path / name).touch()
    monkeypatch.setattr(os, "environ", {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible})
    monkeypatch.setattr(launcher, "is_gpu_package", lambda: is_gpu_package)
    monkeypatch.setattr(launcher, "visible_gpus", lambda: 0)
    done = call(lambda: print(processes_of_job().here))
    note = "note: this machine has 2 GPUs, but this Paddle is the package for CPUs; paddlepaddle-gpu would use them\n"
    assert done == Done(0, "1\n", note if is_noted and not is_gpu_package else "")


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ("--nnodes 2 --rank x", "--rank: "),
        ("--nnodes=two --rank 1", "--nnodes: "),
        ('--master "h:1', "No closing quotation"),
        ("--nnodes 0", "--nnodes: 0: "),
        ("--master h:1 --nnodes 2 --rank 2", "--rank: 2: with --nnodes 2, ranks are 0 to 1"),
        ("--max_restart 3", "--max_restart"),
        ("--devices 0,1", "--devices"),
        ("--rank 1", "--rank: 1: "),
        ("--nnode 4", "--nnode"),
        ("script.py", "script.py"),
        ("--nproc_per_node=9", "--nproc_per_node"),
        ("--rank 0 --nnodes", "--nnodes: "),
        ("--nnodes 2 --rank 1", "--nnodes: 2: needs --master HOST:PORT"),
        ("--nnodes 2 --master h:1", "--nnodes: 2: needs --master HOST:PORT and --rank"),
        *((f"--nnodes 2 --rank 0 --master {wrong}", f"--master {wrong}: must be HOST:PORT")
          for wrong in ("localhost", "localhost:99999", "localhost:port", "etcd://host")),
    ],
)  # fmt: skip
def test_wrong_launch_arguments_are_named(given: str, names: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", {"LAUNCH_ARGS": given, "NPROC": "1"})
    with pytest.raises(InputError, match=r"^LAUNCH_ARGS: ") as error:
        processes_of_job()
    assert names in str(error.value)


def test_the_address_of_the_master_is_one_that_others_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [_with_address(f"{host}:5") for host in ("localhost", "127.0.0.1")] == ["127.0.0.1:5"] * 2
    # As Debian writes the machine's own name into /etc/hosts.
    monkeypatch.setattr("socket.getaddrinfo", lambda *_: [(0, 0, 0, "", ("127.0.1.1", 0))])
    with pytest.raises(InputError, match=r"--master this:5: this is 127\.0\.1\.1 on this machine"):
        _with_address("this:5")


def test_a_job_step_without_its_machines_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", {"SLURM_STEP_NUM_TASKS": "2", "SLURM_JOB_NUM_NODES": "", "NPROC": "1"})
    with pytest.raises(InputError, match=r"^SLURM_STEP_NODELIST: is not set"):
        processes_of_job()
    monkeypatch.setattr(os, "environ", {"SLURM_STEP_NUM_TASKS": "two", "NPROC": "1"})
    with pytest.raises(InputError, match=r"^SLURM_STEP_NUM_TASKS: two is not a number"):
        processes_of_job()


def test_each_task_of_a_job_step_is_a_machine_and_the_port_depends_on_the_job(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    variables = {"STEP_NUM_TASKS": "2", "JOB_NUM_NODES": "2", "STEP_NODELIST": "node[3-4]", "PROCID": "1"}
    of_slurm = {f"SLURM_{name}": value for name, value in {**variables, "STEP_ID": "5"}.items()}
    monkeypatch.setattr(os, "environ", {**of_slurm, "PATH": str(tmp_path)})
    for job, port in (("123", 20128), ("124", 20129), ("19999", 20004)):
        monkeypatch.setenv("SLURM_JOB_ID", job)
        with pytest.raises(InputError, match=r"^SLURM_STEP_NODELIST: scontrol cannot read node\[3-4\]; set LAUNCH"):
            launcher._machines_of_slurm(1)
        (tmp_path / "scontrol").write_text('#!/bin/sh\n[ "$3" = "node[3-4]" ] && echo node3 && echo node4\n')
        (tmp_path / "scontrol").chmod(0o755)
        assert launcher._machines_of_slurm(1) == (f"node3:{port}", 2, 1)
        (tmp_path / "scontrol").unlink()


def test_a_folder_for_logs_that_cannot_be_written_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    for folder in (tmp_path / "file" / "log", tmp_path / "mnt" / "log"):
        monkeypatch.setattr(os, "environ", {"LOG_DIR": str(folder)})
        with pytest.raises(InputError, match=r"^LOG_DIR: "):
            launcher.start_ranks("script.py", [], Processes(2, 2, 0))
    assert not (tmp_path / "mnt").exists()
