"""A rank that dies while the others wait for ever in an exchange, as with NCCL: the launcher ends the job."""

from __future__ import annotations

import platform
import re
import subprocess
from pathlib import Path

from ernie_gram.run.run_log import read_log
from tests.support import pretended_gpu
from tests.support.commands import python, ranks_with, started, two_ranks, wait_for
from tests.support.runs import options

# An environment variable by which the processes of a job are found, also after the death of their launcher.
JOB = "JOB_OF_A_TEST"
# The ranks that wait are killed after a second; no checkpoint is being written.
LAUNCHER = """
from ernie_gram.distributed import watch
watch.KILL_SECONDS = 1.0
"""


def test_the_ranks_of_a_killed_launcher_save_and_end(tmp_path: Path) -> None:
    command = [*two_ranks(tmp_path / "log", "tests/support/rank_until_signal.py"), str(tmp_path)]
    with started(*command, stderr=subprocess.PIPE, **{JOB: str(tmp_path)}) as launcher:
        assert wait_for(lambda: len(list(tmp_path.glob("ready.*"))) == 2)
        launcher.kill()
        launcher.communicate()
        assert wait_for(lambda: len(list(tmp_path.glob("saved.*"))) == 2)
        assert wait_for(lambda: ranks_with(**{JOB: str(tmp_path)}) == {})


def test_a_killed_rank_ends_the_job_although_the_other_waits_for_it(built: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    _, code, *arguments = two_ranks(log, "tests/support/rank_that_waits.py")
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
    # Jobs of several machines have different files, also on storage without locks.
    assert {path.name for path in log.glob("heartbeat*")} == {f"heartbeat.{rank}.{platform.node()}" for rank in (0, 1)}
    assert ranks_with(**{JOB: str(tmp_path)}) == {}
