"""SIGTERM, SIGINT and SIGHUP: a process ends with one line and status 143, 130 or 129; training saves first."""

from __future__ import annotations

import faulthandler
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from ernie_gram.run import checkpoint
from ernie_gram.run.run_log import read_log
from ernie_gram.run.termination import HANG_SECONDS, LOST_PEER_STATUS, lost_peer_error, noted_signals
from tests.support.commands import ERNIE_GRAM, python, started, wait_for
from tests.support.runs import options, pretrain

LINE = "terminated by {}; run the same command again to resume\n"
NOTICE = "{}: ends after this step with a checkpoint; a second signal ends at once\n"
WAITING = """
import time
from ernie_gram.run.termination import deferred, end_at_signals, until_requested
with end_at_signals():
    print("ready", flush=True)
    {}
"""
SLEEP = "time.sleep(60)"
# A C++ call that turns the exit into an error of its own, as Paddle's do.
CONVERTED = """
    try:
        time.sleep(60)
    except SystemExit as error:
        raise SystemError("returned a result with an exception set") from error
"""
POLL = """
    with deferred():
        print(len(list(until_requested(iter(lambda: time.sleep(0.02), 1)))) > 1, flush=True)
        time.sleep(0.5)
        print('saved', flush=True)
"""
DEFERRED = f"with deferred(): {SLEEP}"


@pytest.mark.parametrize(
    ("code", "numbers", "stdout", "stderr"),
    [
        pytest.param(SLEEP, [signal.SIGHUP], "", LINE, id="waits"),
        pytest.param(CONVERTED, [signal.SIGTERM], "", LINE, id="converted exit"),
        pytest.param(POLL, [signal.SIGINT], "True\nsaved\n", NOTICE + LINE, id="saves"),
        pytest.param(POLL, [signal.SIGTERM] * 3, "True\nsaved\n", NOTICE + LINE, id="repeated signal"),
        pytest.param(DEFERRED, [signal.SIGTERM, None, signal.SIGTERM], "", NOTICE, id="second signal"),
        # Nobody reads the notice of the first, as after `2>&1 | tee` and Ctrl-C, or with a full disk.
        pytest.param(DEFERRED, [signal.SIGTERM, None, signal.SIGTERM], "", None, id="full disk"),
    ],
)
def test_a_process_ends(code: str, numbers: list[int | None], stdout: str, stderr: str | None) -> None:
    with (
        open("/dev/full", "w") as full,
        started("-c", WAITING.format(code), stderr=full if stderr is None else subprocess.PIPE) as process,
    ):
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.3)  # until the process is inside the call
        for number in numbers:
            if number is None:
                time.sleep(1.2)
            else:
                process.send_signal(number)
                time.sleep(0.1)  # signals that wait are one
        found = process.communicate(timeout=20)
    name = signal.Signals(numbers[0] or 0).name
    assert process.returncode == 128 + (numbers[0] or 0)
    assert found == (stdout, stderr and stderr.replace("{}", name))


def test_with_nohup_a_process_goes_on_when_its_terminal_is_closed() -> None:
    code = "os.kill(os.getpid(), signal.SIGHUP); print('goes on', flush=True)"
    before = "import os, signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)"
    done = python("-c", before + WAITING.format(code))
    assert (done.returncode, done.stdout.splitlines()) == (0, ["ready", "goes on"])


def test_a_training_process_saves_and_releases_its_folder(built: Path, tmp_path: Path) -> None:
    """Paddle's own handler could block for ever here, with the folder locked (2 of 9 runs).

    Lines on the console are lost, because its disk is full.
    """
    output = tmp_path / "run"
    # An evaluation has some 40 batches; those after the first are not computed any more.
    more = ["--trainer.eval_every=5", "--data.batch_size=2", "--trainer.save_every=3"]
    more += ["--trainer.max_steps=100000", "--optimizer.decay_steps=100000"]
    command = [*ERNIE_GRAM, "pretrain", *options(built, output, *more)]
    with (
        open("/dev/full", "w") as full,
        started(*command, stdout=full, stderr=subprocess.PIPE) as process,
    ):
        wait_for(lambda: process.poll() is not None or any(record["step"] >= 5 for record in read_log(output)))
        process.terminate()
        stderr = process.communicate(timeout=20)[1]
    assert process.returncode == 143
    assert stderr.endswith(NOTICE.format("SIGTERM") + LINE.format("SIGTERM"))
    last = read_log(output)[-1]["step"]
    found = checkpoint.checkpoints(output)[-1]
    checkpoint.verify(found)
    assert checkpoint.load_state(found).step == last


def test_signals_are_noted_within_the_context_and_repeated_ones_once() -> None:
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    with noted_signals() as received:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.raise_signal(number)
    assert received == [signal.SIGTERM]
    assert before == (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT))


@pytest.mark.parametrize(
    ("message", "lost"),
    [
        ("std::exception", True),
        ("(External) NCCL error(6), remote process exited or there was a network error.", True),
        ("(External) NCCL error(2), unhandled system error (run with NCCL_DEBUG=INFO for details).", True),
        ("[gloo/transport/tcp/pair.cc] Connection closed by peer", True),
        # Errors with their cause in this process.
        ("(External) NCCL error(1), unhandled cuda error.", False),
        ("(External) NCCL error(5), invalid usage.", False),
        ("(PreconditionNotMet) The third-party dynamic library (libnccl.so) is not configured correctly.", False),
        ("(External) CUDA error(719), unspecified launch failure.", False),
    ],
)
def test_a_lost_connection_ends_one_of_several_processes_with_its_own_status(
    message: str, lost: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises((SystemExit, OSError)) as ended, lost_peer_error(2):
        raise OSError(message)
    assert str(ended.value) == (str(LOST_PEER_STATUS) if lost else message)
    assert (message in capsys.readouterr().err) == lost
    with pytest.raises(OSError, match=re.escape(message)), lost_peer_error(1):
        raise OSError(message)


def test_steps_and_evaluations_of_a_training_are_progress(
    built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits: list[int] = []
    monkeypatch.setenv(HANG_SECONDS, "1000")
    monkeypatch.setattr(faulthandler, "dump_traceback_later", lambda seconds, **_: limits.append(seconds))
    pretrain(built, tmp_path / "run", "--trainer.max_steps=3", "--paths.held_out=null").ok()
    without = len(limits)
    assert without >= 3 * 3
    pretrain(built, tmp_path / "other", "--trainer.max_steps=3", "--trainer.eval_every=3").ok()
    assert len(limits) > 2 * without + 2
    assert {*limits} == {1000}
