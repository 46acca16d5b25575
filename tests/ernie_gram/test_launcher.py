"""run_pretrain.sh: the processes that it starts, on one machine and under Slurm, and its errors."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

import pytest

from ernie_gram import pretrain
from ernie_gram.run.run_log import read_log
from tests.support import pretended_gpu
from tests.support.commands import ROOT, Done, call, shell
from tests.support.further_cases import FURTHER
from tests.support.runs import options


def pretrain_sh(built: Path, output: Path, *more: str, **environment: str) -> Done:
    """Run run_pretrain.sh, which must end well and warn of nothing; its variables are those of `environment` only."""
    variables = {"NPROC": None, "CUDA_VISIBLE_DEVICES": None, **environment}
    command = [str(ROOT / "run_pretrain.sh"), "conf/ablation/explicit.yaml", *options(built, output, *more)]
    done = shell(*command, **variables).ok()
    assert done.stderr == ""
    return done


def test_the_launcher_knows_when_a_rank_hangs(built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[int] = []
    monkeypatch.setenv("NPROC", "2")
    monkeypatch.setattr(pretrain, "start_ranks", lambda *given: sys.exit(limits.append(given[2])))
    call(pretrain.main, *options(built, tmp_path / "run", "--trainer.hang_seconds=7")).ok()
    assert limits == [7]


def test_two_ranks_train_on_two_gpus(built: Path, tmp_path: Path) -> None:
    """One process is started for each GPU, and uses it."""
    environment = pretended_gpu.environment(2) | {pretended_gpu.CALLS: str(tmp_path), "LOG_DIR": str(tmp_path / "log")}
    more = ["--trainer.max_steps=4", "--trainer.eval_every=2", "--trainer.micro_batch=3", "--trainer.device=gpu"]
    pretrain_sh(built, tmp_path / "run", *more, **environment)
    for rank in (0, 1):
        calls = (tmp_path / f"{rank}.txt").read_text().splitlines()
        assert set(calls[1:]) == {"peak"}
        assert calls[0] == f"set_device gpu:{rank}"
    records = read_log(tmp_path / "run")
    assert [record["step"] for record in records if record["kind"] == "train"] == [1, 2, 3, 4]
    assert all(record["sent_bytes"] > 0 for record in records if record["kind"] == "train")


def test_the_console_shows_only_the_messages_of_this_project(built: Path, tmp_path: Path) -> None:
    """Paddle would print more in each process.

    There is one GPU, but the two processes are to use the CPU; so their groups are gloo's, whatever the environment. A
    warning is printed once, although the launcher checks the input first.
    """
    more = ["--trainer.max_steps=4", "--trainer.eval_every=2", "--trainer.log_every=2", "--trainer.device=cpu"]
    more.append(f"--paths.held_out={built / 'corpus'}")
    environment = {"NPROC": "2", "LOG_DIR": str(tmp_path / "log"), **pretended_gpu.environment(1)}
    environment |= {"PADDLE_DISTRI_BACKEND": "nccl", pretended_gpu.CALLS: str(tmp_path)}
    done = pretrain_sh(built, tmp_path / "run", *more, **environment)
    warning = f"warning: paths.held_out: {built / 'corpus'} has the text of "
    assert done.stdout.count(warning) == 1
    known = (warning, "corpus ", "kernels ", "training ", "output ", "eval", "train step", "saved ")
    assert [line for line in done.stdout.splitlines() if not line.startswith(known)] == []
    # The command, which is the launcher too, and its processes.
    assert len((tmp_path / "starts.txt").read_text().splitlines()) == 1 + 2


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


def slurm(built: Path, folder: Path, *more: str, **environment: str) -> Done:
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
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "run" / "step_3").is_dir()
    # A second run in the same folder would be refused, so the second process belongs to the first one's training.
    logs = [(tmp_path / "log" / f"machine_{rank}" / "workerlog.0").read_text() for rank in (0, 1)]
    assert "train step 3/3" in logs[0]
    assert logs[1] == ""


def test_bad_slurm_steps_are_refused(built: Path, tmp_path: Path) -> None:
    for environment, key in (
        ({"NPROC": "2", "NODES": "1"}, "NPROC: 2"),
        ({"FIRST": "no-such-host.invalid"}, "no-such-host.invalid"),
        ({"NPROC": "5"}, "data.batch_size: 10 processes"),
        ({"SLURM_JOB_ID": "1", "LAUNCH_ARGS": "--master localhost --nnodes 2 --rank 0"}, "--master localhost"),
    ):
        done = slurm(built, tmp_path, **environment)
        assert done.returncode == 2
        lines = done.stderr.splitlines()
        assert len(lines) == 2
        assert all(line.startswith("error: ") and key in line for line in lines), lines
    assert not (tmp_path / "run").exists()
