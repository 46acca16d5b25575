"""run_pretrain.sh: the processes that it starts, on one machine and on two, and its errors."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ernie_gram import pretrain
from ernie_gram.distributed.world import free_port
from ernie_gram.run.run_log import read_log
from tests.support import pretended_gpu
from tests.support.commands import ROOT, Done, assert_one_line_error, call, shell
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
    known = (warning, "corpus ", "training ", "output ", "eval", "train step", "saved ")
    assert [line for line in done.stdout.splitlines() if not line.startswith(known)] == []
    # The command, which is the launcher too, and its processes.
    assert len((tmp_path / "starts.txt").read_text().splitlines()) == 1 + 2


def machines(built: Path, folder: Path, *more: str, **environment: str) -> list[Done]:
    """Run the launcher as on two machines; both are this one."""
    arguments = f"--master {environment.pop('MASTER', '127.0.0.1')}:{free_port()} --nnodes 2 --rank "
    command = [str(ROOT / "run_pretrain.sh"), "conf/ablation/explicit.yaml", *options(built, folder / "run", *more)]

    def run(rank: int) -> Done:
        variables = {"LOG_DIR": str(folder / "log"), "LAUNCH_ARGS": f"{arguments}{rank}", **environment}
        return shell(*command, timeout=120, **variables)

    with ThreadPoolExecutor() as pool:
        return list(pool.map(run, (0, 1)))


@FURTHER
def test_two_machines_train_together(built: Path, tmp_path: Path) -> None:
    done = machines(built, tmp_path, "--trainer.max_steps=3", "--paths.held_out=null", NPROC="1")
    assert [(each.returncode, each.stderr) for each in done] == [(0, "")] * 2
    assert (tmp_path / "run" / "step_3").is_dir()
    # A second run in the same folder would be refused, so the second process belongs to the first one's training.
    logs = [(tmp_path / "log" / f"machine_{rank}" / "workerlog.0").read_text() for rank in (0, 1)]
    assert "train step 3/3" in logs[0]
    assert logs[1] == ""


def test_machines_that_cannot_train_together_are_refused(built: Path, tmp_path: Path) -> None:
    for environment, message in (
        ({"MASTER": "no-such-host.invalid"}, "LAUNCH_ARGS: --master no-such-host.invalid:"),
        ({"NPROC": "5"}, "data.batch_size: 10 processes"),
    ):
        for done in machines(built, tmp_path, **environment):
            assert_one_line_error(done, message)
    assert not (tmp_path / "run").exists()
