"""The watch over the ranks of a machine, with shell commands in place of ranks."""

from __future__ import annotations

import io
import os
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
from ernie_gram.run.termination import HANG_SECONDS
from tests.support.commands import ROOT

BEATING = """
import sys, time
from ernie_gram.run.termination import beat
for _ in range(int(sys.argv[1])):
    beat()
    time.sleep(0.1)
time.sleep(float(sys.argv[2]))
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


def run(ranks: list[Rank], *signals: int) -> tuple[int, list[str]]:
    """Watch the ranks; return the status and what was said. No rank may be left."""
    with redirect_stderr(io.StringIO()) as said:
        status = watch(ranks, list(signals), lambda: None)
    assert all(rank.status is not None for rank in ranks)
    return status, [line.removeprefix("error: ") for line in said.getvalue().splitlines()]


@pytest.mark.parametrize(
    ("command", "status", "reason"),
    [
        ("echo one; echo 'error: no corpus'; echo two; exit 2", 2, "ended with status 2: error: no corpus"),
        ("echo Traceback; echo ValueError: bad; exit 1", 1, "ended with status 1: ValueError: bad"),
        ("exit 3", 3, "ended with status 3: no output"),
        ("kill -9 $$", 137, "was killed by SIGKILL (perhaps by the system, because memory ran out)"),
        ("kill -6 $$", 134, "was killed by SIGABRT (an assertion failed; rank 0 needs the port of --master"),
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


def beating(beats: int, pause: float, limit: int) -> str:
    """Return the command of a rank that makes progress for some tenths of a second, and none for `pause` seconds."""
    environment = f"PYTHONPATH={shlex.quote(str(ROOT))} {HANG_SECONDS}={limit}"
    return f"{environment} exec {shlex.quote(sys.executable)} -c {shlex.quote(BEATING)} {beats} {pause}"


def test_a_rank_that_hangs_ends_the_job(start: Callable[..., list[Rank]]) -> None:
    ranks = start("trap '' TERM; sleep 60", beating(3, 60, limit=1))
    status, (line,) = run(ranks)
    assert status == 1
    why = f"made no progress for trainer.hang_seconds; its stacks: {ranks[1].log}"
    assert line == f"rank 1 (process {ranks[1].process.pid}) {why}"
    assert '"<string>", line 7 in <module>' in ranks[1].log.read_text()


def test_a_stopped_rank_is_named_when_another_has_lost_the_connection_to_it(start: Callable[..., list[Rank]]) -> None:
    """As gloo does after half a minute."""
    ranks = start("sleep 0.1; exit 75", "kill -STOP $$; sleep 60")
    status, (line,) = run(ranks)
    assert status == 75
    assert line.startswith(f"rank 0 (process {ranks[0].process.pid}) ended with status 75: ")
    assert line.endswith("; rank 1 is running")


@pytest.mark.parametrize(("beats", "pause", "limit"), [(15, 0, 1), (1, 1.5, 0)])
def test_progress_and_time_without_a_limit_are_no_hang(
    start: Callable[..., list[Rank]], beats: int, pause: float, limit: int
) -> None:
    assert run(start(beating(beats, pause, limit), "true")) == (0, [])


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
    assert watch(ranks, signals, lambda: None) == 130
    assert [rank.status for rank in ranks] == [-signal.SIGKILL] * 2
