"""The processes that the environment of a command asks for: NPROC, LAUNCH_ARGS; and their start.

A rank that dies while the others wait for ever in an exchange, as with NCCL, ends the job.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from ernie_gram.distributed import launcher
from ernie_gram.distributed.launcher import LAUNCHER_LOCK, Processes, processes_of_job
from ernie_gram.run.run_log import read_log
from reader.errors import InputError
from reader.system.lock_files import LOCK_FILE, lock_file
from reader.system.processes import available_cores
from tests.support import pretended_gpu
from tests.support.commands import in_ranks, python, ranks_with, started, wait_for
from tests.support.runs import options


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, Processes(1, 1, 0, is_launcher=False)),
        ({"NPROC": "1"}, Processes(1, 1, 0, is_launcher=False)),
        ({"NPROC": " 3 "}, Processes(3, 3, 0)),
        ({"NPROC": "2", "LAUNCH_ARGS": "--nnodes=4 --rank 3 --master 127.0.0.1:7"}, Processes(2, 8, 6, "127.0.0.1:7")),
    ],
)
def test_processes_are_those_of_the_environment(
    environment: dict[str, str], expected: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "environ", environment)
    assert processes_of_job() == expected


def test_without_a_number_there_is_a_process_for_each_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", {})
    monkeypatch.setattr(launcher, "visible_gpus", lambda: 3)
    assert processes_of_job() == Processes(3, 3, 0)


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
        ("--host 10.0.0.5", "--host"),
        ("--nnodes 2 --rank 0 --master no-such-host.invalid:7", "no-such-host.invalid"),
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


def test_a_number_of_processes_that_is_none_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", {"NPROC": "many"})
    with pytest.raises(InputError, match=r"^NPROC: many"):
        processes_of_job()


def test_a_folder_for_logs_that_cannot_be_written_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(os, "environ", {"LOG_DIR": str(tmp_path / "file" / "log")})
    with pytest.raises(InputError, match=r"^LOG_DIR: "):
        launcher.start_ranks(["script.py"], Processes(2, 2, 0), 0)


def test_a_second_job_with_the_same_folder_of_logs_is_refused(tmp_path: Path) -> None:
    """Their outputs would be mixed up."""
    log = tmp_path / "log"
    log.mkdir()
    with lock_file(log / LAUNCHER_LOCK, "the first job"):
        done = python(*in_ranks(log), timeout=120)
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: LOG_DIR: choose another folder, {log} is in use by process ")
    assert [path.name for path in log.iterdir()] == [LAUNCHER_LOCK]
    # The folder of logs may be that of the run, which has a lock of its own.
    assert LAUNCHER_LOCK != LOCK_FILE


THREADS_OF_RANK = """
from ernie_gram.distributed.world import RANK
import os
print(f"rank {RANK}:", os.environ["OMP_NUM_THREADS"], os.environ["ERNIE_GRAM_HANG_SECONDS"])
"""


@pytest.mark.parametrize("given", ["", "3"])
def test_ranks_share_the_cores_unless_the_number_of_threads_is_given(tmp_path: Path, given: str) -> None:
    """The console shows the first rank of this job only.

    No log has secrets: Paddle's launcher would write the environment of each rank into files that everybody can read.
    """
    (log := tmp_path / "log").mkdir()
    (log / "workerlog.0").write_text("of an earlier job\n")
    (script := tmp_path / "rank.py").write_text(THREADS_OF_RANK)
    more = {"OMP_NUM_THREADS": given, "API_TOKEN": "a secret of the test"}
    done = python(*in_ranks(log, str(script)), timeout=120, **more)
    threads = given or str(max(1, available_cores() // 2))
    assert (done.returncode, done.stdout) == (0, f"rank 0: {threads} 300\n"), done.stderr
    shown = [(log / f"workerlog.{rank}").read_text() for rank in (0, 1)]
    assert shown == [f"of an earlier job\nrank 0: {threads} 300\n", f"rank 1: {threads} 300\n"]
    assert [path.name for path in log.iterdir() if more["API_TOKEN"] in path.read_text()] == []


def test_ranks_save_although_nobody_reads_the_console(tmp_path: Path) -> None:
    """As after `2>&1 | tee` and Ctrl-C."""
    command = [*in_ranks(tmp_path / "log", "tests/support/rank_until_signal.py"), str(tmp_path)]
    # Python without a buffer would see the error elsewhere.
    buffered = {"PYTHONUNBUFFERED": ""}
    with started(*command, stderr=subprocess.STDOUT, **buffered) as process:
        assert process.stdout.readline() == "waits\n"
        # The console shows the lines of one rank.
        assert wait_for(lambda: len(list(tmp_path.glob("ready.*"))) == 2)
        process.stdout.close()
        process.send_signal(signal.SIGINT)
        # The same request again, as from a batch system.
        time.sleep(0.7)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
    assert {path.name for path in tmp_path.glob("saved.*")} == {"saved.0", "saved.1"}


# An environment variable by which the processes of a job are found, also after the death of their launcher.
JOB = "JOB_OF_A_TEST"
# The ranks that wait are killed after a second; no checkpoint is being written.
LAUNCHER = """
from ernie_gram.distributed import watch
watch.KILL_SECONDS = 1.0
"""


def test_the_ranks_of_a_killed_launcher_save_and_end(tmp_path: Path) -> None:
    command = [*in_ranks(tmp_path / "log", "tests/support/rank_until_signal.py"), str(tmp_path)]
    with started(*command, stderr=subprocess.PIPE, **{JOB: str(tmp_path)}) as launcher:
        assert wait_for(lambda: len(list(tmp_path.glob("ready.*"))) == 2)
        launcher.kill()
        launcher.communicate()
        assert wait_for(lambda: len(list(tmp_path.glob("saved.*"))) == 2)
        assert wait_for(lambda: ranks_with(**{JOB: str(tmp_path)}) == {})


def test_a_killed_rank_ends_the_job_although_the_other_waits_for_it(built: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    _, code, *arguments = in_ranks(log, "tests/support/rank_that_waits.py")
    more = ["--trainer.max_steps=9", "--paths.held_out=null", "--trainer.device=gpu"]
    variables = {**pretended_gpu.environment(2), "NCCL_SOCKET_IFNAME": "eth7", JOB: str(tmp_path)}
    done = python("-c", LAUNCHER + code, *arguments, *options(built, tmp_path / "run", *more), timeout=120, **variables)
    assert done.returncode == 137, done.stderr
    why = r"error: rank 1 \(process \d+\) was killed by SIGKILL \(perhaps by the system, because memory ran out\); .*"
    assert re.fullmatch(why, done.stderr.splitlines()[-1])
    assert [record["step"] for record in read_log(tmp_path / "run") if record["kind"] == "train"] == [1, 2]
    waiting = (log / "workerlog.0").read_text()
    assert waiting.startswith("NCCL_SOCKET_IFNAME eth7\n")
    # It was killed while it waited.
    assert "waits as NCCL does" in waiting
    assert "lost the connection" not in waiting
    assert ranks_with(**{JOB: str(tmp_path)}) == {}
