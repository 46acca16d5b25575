"""run_pretrain.sh: the processes that it starts, on one machine and under Slurm, and its errors."""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path

import pytest

from ernie_gram.distributed import count_gpus
from ernie_gram.run.run_log import read_log
from tests.support import pretended_gpu
from tests.support.commands import ROOT, call, shell
from tests.support.further_cases import FURTHER
from tests.support.runs import options

TOO_MANY = "data.batch_size: 9 processes, but only 8 sequences in a batch; use fewer processes"


def pretrain_sh(
    built: Path, output: Path, *more: str, config: str = "conf/pretrain/small_en.yaml", **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run run_pretrain.sh; its variables are those of `environment` only."""
    variables = {"NPROC": None, "CUDA_VISIBLE_DEVICES": None, **environment}
    return shell(str(ROOT / "run_pretrain.sh"), config, *options(built, output, *more), **variables)


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"NPROC": "9"}, TOO_MANY),
        ({"NPROC": "many"}, "NPROC: many is not a number of processes"),
        ({"NPROC": "0"}, "NPROC: 0 is not a number of processes"),
        # One process for each GPU.
        (pretended_gpu.environment(9), TOO_MANY),
    ],
)
def test_an_invalid_number_of_processes_is_refused(
    built: Path, tmp_path: Path, environment: dict[str, str], message: str
) -> None:
    done = pretrain_sh(built, tmp_path / "run", LOG_DIR=str(tmp_path / "log"), **environment)
    assert done.returncode == 2
    assert done.stderr == f"error: {message}\n"
    assert not list(tmp_path.iterdir())


NOTE = "note: this machine has 9 GPUs, but this Paddle is the package for CPUs; paddlepaddle-gpu would use them\n"


@pytest.fixture
def path_with_nine_gpus(tmp_path: Path) -> str:
    """A PATH on which nvidia-smi lists 9 GPUs."""
    nvidia_smi = tmp_path / "bin" / "nvidia-smi"
    nvidia_smi.parent.mkdir()
    nvidia_smi.write_text("#!/bin/sh\nseq -f 'GPU %g: Tesla' 0 8\n")
    nvidia_smi.chmod(0o755)
    return f"{nvidia_smi.parent}:{os.environ['PATH']}"


def test_without_a_gpu_for_paddle_one_process_is_started(built: Path, tmp_path: Path, path_with_nine_gpus: str) -> None:
    """Nine processes would be refused, because a batch of 8 sequences is too small for them."""
    done = pretrain_sh(built, tmp_path / "run", "--check", PATH=path_with_nine_gpus)
    assert done.returncode == 0
    note, warning = done.stderr.splitlines(keepends=True)
    assert note == NOTE
    assert "the lexicon is too large" in warning


@pytest.mark.parametrize(("visible", "note"), [(None, NOTE), ("", ""), ("-1", ""), ("0,1", NOTE)])
@pytest.mark.parametrize("is_gpu_package", [False, True])
def test_gpus_of_another_package_of_paddle_are_noted_unless_they_are_hidden(
    path_with_nine_gpus: str, monkeypatch: pytest.MonkeyPatch, visible: str | None, note: str, is_gpu_package: bool
) -> None:
    monkeypatch.setenv("PATH", path_with_nine_gpus)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    if is_gpu_package:
        pretended_gpu.pretend(0, replace=monkeypatch.setattr)
    # The function has the package from the module in which it is defined.
    monkeypatch.setattr(count_gpus, "is_gpu_package", lambda: is_gpu_package)
    done = call(count_gpus.main)
    assert (done.stdout, done.stderr) == ("0\n", "" if is_gpu_package else note)


def test_a_driver_that_does_not_answer_counts_as_none(
    path_with_nine_gpus: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (Path(path_with_nine_gpus.partition(":")[0]) / "nvidia-smi").write_text("#!/bin/sh\nsleep 3\necho 'GPU 0: Tesla'\n")
    monkeypatch.setenv("PATH", path_with_nine_gpus)
    monkeypatch.setattr(count_gpus, "DRIVER_SECONDS", 0.1)
    assert count_gpus.listed_gpus() == 0


def test_two_ranks_train_on_two_gpus(built: Path, tmp_path: Path) -> None:
    """One process is started for each GPU, and uses it."""
    environment = pretended_gpu.environment(2) | {pretended_gpu.CALLS: str(tmp_path), "LOG_DIR": str(tmp_path / "log")}
    more = ["--trainer.max_steps=4", "--trainer.eval_every=2", "--trainer.micro_batch=3", "--trainer.device=gpu"]
    config = "conf/ablation/explicit.yaml"
    done = pretrain_sh(built, tmp_path / "run", *more, config=config, **environment)
    assert (done.returncode, done.stderr) == (0, "")
    for rank in (0, 1):
        calls = (tmp_path / f"{rank}.txt").read_text().splitlines()
        assert set(calls[1:]) == {"peak"}
        assert calls[0] == f"set_device gpu:{rank}"
    records = read_log(tmp_path / "run")
    assert [record["step"] for record in records if record["kind"] == "train"] == [1, 2, 3, 4]
    assert all(record["sent_bytes"] > 0 for record in records if record["kind"] == "train")


@pytest.mark.parametrize(
    ("devices", "message"),
    [
        ("1,5", "--devices: 1,5: not all are visible GPUs, which are: 0,1"),
        ("1", "NPROC: 2 processes, but --devices names 1; each process needs a GPU"),
    ],
)
def test_gpus_that_are_not_there_are_refused(built: Path, tmp_path: Path, devices: str, message: str) -> None:
    environment = pretended_gpu.environment(2) | {"LOG_DIR": str(tmp_path / "log"), "NPROC": "2"}
    done = pretrain_sh(built, tmp_path / "run", **environment, LAUNCH_ARGS=f"--devices {devices}")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == f"error: {message}"
    assert not (tmp_path / "run").exists()


def test_an_unwritable_folder_for_logs_is_refused_before_training(built: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for folder in (tmp_path / "file" / "log", tmp_path / "mnt" / "log"):
        done = pretrain_sh(built, tmp_path / "run", NPROC="2", LOG_DIR=str(folder))
        assert done.returncode == 2
        assert done.stderr == f"error: LOG_DIR: cannot write to the folder {folder}, or it cannot be created\n"
        assert not (tmp_path / "run").exists()
    assert not (tmp_path / "mnt").exists()


def test_the_console_shows_only_the_messages_of_this_project(built: Path, tmp_path: Path) -> None:
    """With PADDLE_VERBOSE=1, Paddle's launcher and its processes print some 40 lines more.

    There is one GPU, but the two processes are to use the CPU; so their groups are gloo's, whatever the environment. A
    warning is printed once, although the launcher first runs a check.
    """
    more = ["--trainer.max_steps=4", "--trainer.eval_every=2", "--trainer.log_every=2", "--trainer.device=cpu"]
    more.append(f"--paths.held_out={built / 'corpus'}")
    environment = {"NPROC": "2", "LOG_DIR": str(tmp_path / "log"), **pretended_gpu.environment(1)}
    environment["PADDLE_DISTRI_BACKEND"] = "nccl"
    config = "conf/ablation/explicit.yaml"
    done = pretrain_sh(built, tmp_path / "run", *more, config=config, **environment)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    warning = f"warning: paths.held_out: {built / 'corpus'} has the text of "
    assert done.stdout.count(warning) == 1
    large = f"warning: {built / 'corpus'}: the lexicon is too large for this text"
    known = (warning, large, "corpus ", "kernels ", "training ", "output ", "eval", "train step", "saved ")
    assert [line for line in done.stdout.splitlines() if not line.startswith(known)] == []
    assert len(done.stdout.splitlines()) == 13
    # The files have all meters, the console only some.
    from ernie_gram.run.run_log import METERS

    training = [record for record in read_log(tmp_path / "run") if record["kind"] == "train"]
    assert [set(METERS) <= record.keys() for record in training] == [True, True]


SRUN = """#!/bin/bash
# Start a command as two tasks, like `srun --nodes 2 --ntasks-per-node 1`, and return the worst status.
export SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=2 SLURM_STEP_NUM_NODES=${NODES:-2} SLURM_STEP_NODELIST='node[7-8]'
tasks=() status=0
for task in 0 1; do SLURM_PROCID=$task "$@" & tasks+=($!); done
for task in "${tasks[@]}"; do wait "$task" || status=$?; done
exit "$status"
"""
SCONTROL = """#!/bin/sh
[ "$*" = 'show hostnames node[7-8]' ] && printf '%s\\n' ${FIRST:-localhost} node8
"""


def slurm(built: Path, folder: Path, *more: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the launcher in a job step with two tasks; both are on this machine."""
    for name, script in (("srun", SRUN), ("scontrol", SCONTROL)):
        path = folder / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(script)
        path.chmod(0o755)
    job = next(job for job in range(os.getpid(), os.getpid() + 9999) if is_free(20000 + job % 10000))
    slurm = {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "SLURM_JOB_ID": str(job), "SLURM_JOB_NUM_NODES": "2"}
    command = ["srun", str(ROOT / "run_pretrain.sh"), "conf/ablation/explicit.yaml"]
    variables = {"LOG_DIR": str(folder / "log"), **slurm, **environment}
    return shell(*command, *options(built, folder / "run", *more), timeout=120, **variables)


def is_free(port: int) -> bool:
    with socket.socket() as connection:
        return connection.connect_ex(("127.0.0.1", port)) != 0


@FURTHER
def test_the_tasks_of_a_slurm_job_step_train_together(built: Path, tmp_path: Path) -> None:
    done = slurm(built, tmp_path, "--trainer.max_steps=3", "--paths.held_out=null", NPROC="1")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert (tmp_path / "run" / "step_3").is_dir()
    # A second run in the same folder would be refused, so the second process belongs to the first one's training.
    logs = [(tmp_path / "log" / f"machine_{rank}" / "workerlog.0").read_text() for rank in (0, 1)]
    assert "train step 3/3" in logs[0]
    assert logs[1] == ""


def test_bad_slurm_steps_are_refused(built: Path, tmp_path: Path) -> None:
    for environment, message in (
        ({"NPROC": "2", "NODES": "1"}, "NPROC: 2 processes in each of several Slurm tasks per machine"),
        ({"FIRST": "no-such-host.invalid"}, "no address is known for no-such-host.invalid"),
        ({"NPROC": "5"}, "data.batch_size: 10 processes, but only 8 sequences in a batch"),
        (
            {"SLURM_JOB_ID": "1", "LAUNCH_ARGS": "--master localhost --nnodes 2"},
            "--master localhost: must be HOST:PORT",
        ),
    ):
        done = slurm(built, tmp_path, **environment)
        assert done.returncode == 2
        lines = done.stderr.splitlines()
        assert len(lines) == 2
        assert all(line.startswith("error: ") and message in line for line in lines), lines
    assert not (tmp_path / "run").exists()


def test_a_slurm_job_without_srun_is_noted() -> None:
    # Python is the default one. An error ends the command early.
    variables = {"PYTHON": None, "SLURM_JOB_NUM_NODES": "2", "LAUNCH_ARGS": "--master localhost"}
    done = shell(str(ROOT / "run_pretrain.sh"), "conf/ablation/explicit.yaml", **variables)
    note = "note: the Slurm job has 2 machines, but only this one is used; start the command with srun"
    assert done.stderr.splitlines()[0] == note
