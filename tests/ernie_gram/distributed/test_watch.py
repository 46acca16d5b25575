"""The watch over the ranks of a machine, with shell commands in place of ranks."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr
from pathlib import Path

import pytest

from ernie_gram.distributed import watch as watching
from ernie_gram.distributed.watch import Rank, watch
from tests.support.commands import ROOT

HEARTBEAT = """
import sys, time
from pathlib import Path
from ernie_gram.run.heartbeat import beat
own, beats, pause, *others = sys.argv[1:]
Path(f"{own}.ready").touch()
while not all(Path(f"{other}.ready").exists() for other in others):
    time.sleep(0.01)
for i in range(int(beats)):
    beat(f"is in step {i}")
    time.sleep(0.1)
time.sleep(float(pause))
"""


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., list[Rank]]]:
    """Yield a function that starts a shell command for each rank, in its own process group, as a launcher does."""
    # A shell cannot trap a signal that was ignored when it was started, as SIGINT is in a background job of a script.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    for name, value in (("POLL", 0.05), ("SETTLE", 0.3), ("KILL", 1.0), ("SECOND_SIGNAL", 0.2)):
        monkeypatch.setattr(watching, f"{name}_SECONDS", value)

    def call(*commands: str) -> list[Rank]:
        ranks = []
        for number, command in enumerate(commands):
            log = tmp_path / f"workerlog.{number}"
            log.write_text("error: of an earlier job\n")
            ranks.append(watching.start(number, ["sh", "-c", command], os.environ, log))
        return ranks

    yield call
    signal.signal(signal.SIGINT, before)


def run(ranks: list[Rank], *signals: int, limit: int = 1) -> tuple[int, list[str]]:
    """Watch the ranks; return the status and what was said. No rank may be left."""
    with redirect_stderr(io.StringIO()) as said:
        status = watch(ranks, list(signals), lambda: None, limit)
    assert all(rank.status is not None for rank in ranks)
    return status, [line.removeprefix("error: ") for line in said.getvalue().splitlines()]


@pytest.mark.parametrize(
    ("command", "status", "reason"),
    [
        ("echo one; echo 'error: no corpus'; echo two; exit 2", 2, "ended with status 2: error: no corpus"),
        ("echo Traceback; echo ValueError: bad; exit 1", 1, "ended with status 1: ValueError: bad"),
        ("exit 3", 3, "ended with status 3: no output"),
        ("kill -9 $$", 137, "was killed by SIGKILL (perhaps by the system, because memory ran out)"),
        ("kill -7 $$", 135, "was killed by SIGBUS (a file that it was reading became shorter, or"),
        ("kill -11 $$", 139, "was killed by SIGSEGV; its output: "),
    ],
)
def test_a_rank_that_dies_ends_the_job_with_its_name_and_reason(
    start: Callable[..., list[Rank]], command: str, status: int, reason: str
) -> None:
    """Rank 0 notices first that the connection is lost (75); rank 2 waits for ever, and ignores SIGTERM."""
    ranks = start("sleep 0.05; exit 75", f"sleep 0.1; {command}", "trap '' TERM; sleep 60")
    found, (line,) = run(ranks)
    assert found == status
    assert line.startswith(f"rank 1 (process {ranks[1].process.pid}) {reason}")
    assert line.rstrip(")").endswith(f"{ranks[1].log}")
    assert ranks[2].status == -signal.SIGKILL


def beating(folder: Path) -> str:
    """Return the command of a rank with a heartbeat; its arguments are to follow."""
    (folder / "rank.py").write_text(HEARTBEAT)
    return f"PYTHONPATH={shlex.quote(str(ROOT))} exec {shlex.quote(sys.executable)} {folder / 'rank.py'}"


def test_a_rank_that_hangs_ends_the_job(start: Callable[..., list[Rank]], tmp_path: Path) -> None:
    python = beating(tmp_path)
    one, other = tmp_path / "one", tmp_path / "other"
    # They wait for each other: on a loaded machine, one of them may start later.
    ranks = start(f"{python} {one} 8 60 {other}", f"{python} {other} 3 60 {one}")
    status, (line,) = run(ranks)
    assert status == 124
    # On a loaded machine the launcher may have read the notes before the last one was written.
    assert re.search(r"trainer.hang_seconds.* rank 1, which is in step [12], then rank 0, which is in step", line)
    assert line.endswith(str(tmp_path))
    assert 'rank.py", line 12 in <module>' in ranks[1].log.read_text()


def test_a_stopped_rank_is_named_when_another_has_lost_the_connection_to_it(start: Callable[..., list[Rank]]) -> None:
    """As gloo does after half a minute."""
    ranks = start("sleep 0.1; exit 75", "kill -STOP $$; sleep 60")
    ranks[1].heartbeat.write_text(json.dumps([time.monotonic(), "is in step 3"]))
    status, (line,) = run(ranks, limit=60)
    assert status == 75
    assert line.startswith(f"rank 0 (process {ranks[0].process.pid}) ended with status 75: ")
    assert line.endswith("; rank 1, which is in step 3")


@pytest.mark.parametrize(("beats", "pause", "limit"), [(15, 0, 1), (1, 1.5, 0)])
def test_progress_and_time_without_a_limit_are_no_hang(
    start: Callable[..., list[Rank]], tmp_path: Path, beats: int, pause: float, limit: int
) -> None:
    assert run(start(f"{beating(tmp_path)} {tmp_path}/one {beats} {pause}", "true"), limit=limit) == (0, [])


def test_polls_without_progress_are_counted_and_not_the_time(start: Callable[..., list[Rank]]) -> None:
    """Otherwise a launcher that was stopped for a while would take its ranks for hanging."""
    [rank] = start("sleep 60")
    rank.heartbeat.write_text(json.dumps([time.monotonic() - 3600, "is in step 3"]))
    calls = round(10 / watching.POLL_SECONDS)
    assert [rank.is_hanging(10) for _ in range(1 + calls)] == [*[False] * calls, True]
    rank.heartbeat.write_text(json.dumps([time.monotonic(), "is in step 4"]))
    assert [rank.is_hanging(10) for _ in range(2)] == [False, False]
    rank.send(signal.SIGKILL)


def test_the_heartbeat_of_an_earlier_job_is_none_of_this_one(start: Callable[..., list[Rank]]) -> None:
    [earlier] = start("true")
    earlier.heartbeat.write_text(json.dumps([time.monotonic(), "is in step 3"]))
    assert run(start("sleep 1.5")) == (0, [])


@pytest.mark.parametrize(("signals", "status"), [([signal.SIGTERM], 143), ([signal.SIGINT], 130)])
def test_a_signal_is_passed_on_once(start: Callable[..., list[Rank]], signals: list[int], status: int) -> None:
    """A rank may take longer than the time after which ranks are killed in other cases."""
    name = "TERM" if status == 143 else "INT"
    save = f"trap 'echo signal; sleep 2; exit {status}' {name}; while :; do sleep 0.05; done"
    ranks = start(save, save)
    time.sleep(0.3)
    assert run(ranks, *signals) == (status, [])
    assert all(rank.log.read_text().count("signal\n") == 1 for rank in ranks)


def test_a_signal_to_another_rank_or_machine_leaves_time_to_save(start: Callable[..., list[Rank]]) -> None:
    """Rank 0 writes the checkpoint, which takes longer than the time of ranks that are left after a failure."""
    ranks = start("sleep 2; echo saved; exit 143", "exit 143")
    assert run(ranks)[0] == 143
    assert ranks[0].log.read_text().endswith("saved\n")


def test_a_rank_that_a_signal_ended_at_its_start_is_not_waited_for(start: Callable[..., list[Rank]]) -> None:
    """It had not yet set its handlers, so the others do not end with it."""
    ranks = start("sleep 3; echo late", "kill -15 $$")
    assert run(ranks)[0] == 143
    assert "late" not in ranks[0].log.read_text()


def test_a_failure_after_a_signal_ends_the_job(start: Callable[..., list[Rank]]) -> None:
    ranks = start("exit 143", "sleep 0.5; echo 'error: no corpus'; exit 2", "trap '' TERM; sleep 5; echo late")
    status, (line,) = run(ranks)
    assert status == 2
    assert "late" not in ranks[2].log.read_text()
    assert line.startswith(f"rank 1 (process {ranks[1].process.pid}) ended with status 2: error: no corpus")


def test_a_second_signal_kills_the_ranks(start: Callable[..., list[Rank]]) -> None:
    ranks = start("trap '' TERM INT; sleep 60", "trap '' TERM INT; sleep 60")
    time.sleep(0.2)
    signals = [signal.SIGTERM]
    threading.Timer(0.5, signals.append, [signal.SIGINT]).start()
    assert watch(ranks, signals, lambda: None, 0) == 130
    assert [rank.status for rank in ranks] == [-signal.SIGKILL] * 2
