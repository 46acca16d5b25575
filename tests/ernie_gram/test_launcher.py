"""run_pretrain.sh: the number of processes that it starts, and its errors."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ernie_gram.run.run_log import read_log
from tests.support.commands import ROOT
from tests.support.runs import options

TOO_MANY = "data.batch_size: 9 processes, but only 8 sequences in a batch; use fewer processes"


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"NPROC": "9"}, TOO_MANY),
        ({"CUDA_VISIBLE_DEVICES": "3,1,0,2,4,5,6,7,9"}, TOO_MANY),
        ({"NPROC": "many"}, "NPROC: many is not a number of processes"),
        ({"NPROC": "0"}, "NPROC: 0 is not a number of processes"),
    ],
)
def test_an_invalid_number_of_processes_is_refused(
    built: Path, tmp_path: Path, environment: dict[str, str], message: str
) -> None:
    done = subprocess.run(
        [str(ROOT / "run_pretrain.sh"), "conf/pretrain/demo.yaml", *options(built, tmp_path / "run")],
        cwd=ROOT,
        env={**os.environ, "PYTHON": sys.executable, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr == f"error: {message}\n"
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("visible", "processes"), [(None, 9), ("", 1), ("-1", 1), ("1,-1,2,3,4,5,6,7,8,9", 1), ("0,1,2,3,4,5,6,7,8", 9)]
)
def test_the_number_of_processes_defaults_to_the_number_of_visible_gpus(
    built: Path, tmp_path: Path, visible: str | None, processes: int
) -> None:
    """Nine processes are recognised by their error, because a batch of 8 sequences is too small for them."""
    nvidia_smi = tmp_path / "bin" / "nvidia-smi"
    nvidia_smi.parent.mkdir()
    nvidia_smi.write_text("#!/bin/sh\nseq 9\n")
    nvidia_smi.chmod(0o755)
    environment = {key: value for key, value in os.environ.items() if key not in ("NPROC", "CUDA_VISIBLE_DEVICES")}
    environment |= {"PATH": f"{nvidia_smi.parent}:{os.environ['PATH']}", "PYTHON": sys.executable}
    environment |= {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    done = subprocess.run(
        [str(ROOT / "run_pretrain.sh"), "conf/pretrain/demo.yaml", *options(built, tmp_path / "run"), "--check"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == (f"error: {TOO_MANY}\n" if processes == 9 else "")
    assert done.returncode == (2 if processes == 9 else 0)


def test_an_unwritable_folder_for_logs_is_refused_before_training(built: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for folder in (tmp_path / "file" / "log", tmp_path / "mnt" / "log"):
        done = subprocess.run(
            [str(ROOT / "run_pretrain.sh"), "conf/pretrain/demo.yaml", *options(built, tmp_path / "run")],
            cwd=ROOT,
            env={**os.environ, "PYTHON": sys.executable, "NPROC": "2", "LOG_DIR": str(folder)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 2
        assert done.stderr == f"error: LOG_DIR: cannot write to the folder {folder}, or it cannot be created\n"
        assert not (tmp_path / "run").exists()
    assert not (tmp_path / "mnt").exists()


def test_the_console_shows_only_the_messages_of_this_project(built: Path, tmp_path: Path) -> None:
    """With PADDLE_VERBOSE=1, Paddle's launcher and its processes print some 40 lines more."""
    more = ["--trainer.max_steps=4", "--trainer.eval_every=2", "--trainer.log_every=2"]
    done = subprocess.run(
        [str(ROOT / "run_pretrain.sh"), "conf/ablation/explicit.yaml", *options(built, tmp_path / "run", *more)],
        cwd=ROOT,
        env={**os.environ, "PYTHON": sys.executable, "NPROC": "2", "LOG_DIR": str(tmp_path / "log")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    known = ("corpus ", "training ", "output ", "eval", "train step", "saved ")
    assert [line for line in done.stdout.splitlines() if not line.startswith(known)] == []
    assert len(done.stdout.splitlines()) == 10
    # The files have all meters, the console only some.
    from ernie_gram.training.meters import METERS

    training = [record for record in read_log(tmp_path / "run") if record["kind"] == "train"]
    assert [set(METERS) <= record.keys() for record in training] == [True, True]
    assert "exchange_share" not in done.stdout
