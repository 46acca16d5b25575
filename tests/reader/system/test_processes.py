"""Process pool: the order of results, the number of pending tasks, and errors in a worker process."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from reader.errors import InputError
from reader.system.processes import interrupts_handled_by, lines_of_module, ordered_map
from tests.support.commands import ROOT, is_alive, wait_for


@dataclass
class Square:
    """Return (number squared, process ID) for a task (delay in hundredths of a second, number)."""

    def __call__(self, task: tuple[int, int]) -> tuple[int, int]:
        time.sleep(task[0] / 100)
        if task[1] == 13:
            raise InputError("thirteen")
        if task[1] == 99:
            os.kill(os.getpid(), signal.SIGKILL)
        return task[1] ** 2, os.getpid()


@pytest.mark.parametrize("workers", [1, 3])
def test_results_are_ordered_and_tasks_are_taken_when_needed(workers: int) -> None:
    taken = 0

    def tasks() -> Iterator[tuple[int, int]]:
        nonlocal taken
        for i in range(12):
            taken += 1
            yield (12 - i) % 4, i

    processes = set()
    for index, (square, process) in enumerate(ordered_map(Square(), tasks(), workers)):
        assert square == index**2
        assert taken <= index + workers + 2
        processes.add(process)
    assert index == 11
    assert (os.getpid() in processes) == (workers == 1)
    assert len(processes) > 1 or workers == 1


def test_an_input_error_of_a_worker_is_raised_and_a_killed_one_reported() -> None:
    for workers in (1, 2):
        with pytest.raises(InputError, match="thirteen"):
            list(ordered_map(Square(), [(0, i) for i in range(20)], workers))
    with pytest.raises(InputError, match="a worker process was killed"):
        list(ordered_map(Square(), [(0, 1), (0, 99), (0, 2)], 2))


class Garbage:
    """An unreachable cycle that notes the process in which it is collected."""

    def __init__(self, collected: Path) -> None:
        self.cycle, self.collected = self, collected

    def __del__(self) -> None:
        self.collected.write_text(str(os.getpid()))


def test_workers_leave_the_garbage_of_their_parent_alone(tmp_path: Path) -> None:
    gc.disable()
    try:
        Garbage(tmp_path / "collected")
        list(ordered_map(lambda _: gc.collect(), range(4), 2))
        assert not (tmp_path / "collected").exists()
        gc.collect()
        assert (tmp_path / "collected").read_text() == str(os.getpid())
    finally:
        gc.enable()


def test_workers_end_with_their_parent(tmp_path: Path) -> None:
    script = """
import os, sys, time
from pathlib import Path
from reader.system.processes import ordered_map
def work(i):
    Path(sys.argv[1], str(os.getpid())).touch()
    time.sleep(60)
list(ordered_map(work, range(2), 2))
"""
    parent = subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], cwd=ROOT)
    assert wait_for(lambda: len(list(tmp_path.iterdir())) == 2, 30)
    workers = [int(path.name) for path in tmp_path.iterdir()]
    parent.kill()
    parent.wait()
    assert wait_for(lambda: not any(map(is_alive, workers)), 30)


MODULE = """
import os, signal, sys, time

print(os.getpid(), flush=True)
if sys.argv[1] == "waits":
    def save(*_):
        time.sleep(0.6)  # Popen itself waits 0.25 s after an interrupt
        sys.exit(open(sys.argv[2], "w").close())

    signal.signal(signal.SIGTERM, save)
    print("ready", flush=True)
    time.sleep(60)
elif sys.argv[1] == "refuses":
    sys.exit("error: a key: is wrong")
elif sys.argv[1] == "crashes":
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "a_command_of_the_test.py").write_text(MODULE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return "a_command_of_the_test"


def test_lines_are_passed_on_and_errors_are_raised(module: str) -> None:
    assert len(list(lines_of_module(module, "ends"))) == 1
    for how, message in (("refuses", "^a key: is wrong$"), ("crashes", f"^{module} ended with status -9")):
        lines = lines_of_module(module, how)
        assert int(next(lines))
        with pytest.raises(InputError, match=message):
            next(lines)


@pytest.mark.parametrize("is_interrupted", [False, True])
def test_the_process_is_asked_to_end_and_awaited(is_interrupted: bool, module: str, tmp_path: Path) -> None:
    with closing(lines_of_module(module, "waits", str(tmp_path / "saved"))) as lines:
        number = int(next(lines))
        assert next(lines) == "ready"
        if is_interrupted:
            with pytest.raises(KeyboardInterrupt):
                lines.throw(KeyboardInterrupt())
    with pytest.raises(ProcessLookupError):
        os.kill(number, 0)
    assert (tmp_path / "saved").exists()


@pytest.mark.parametrize("handler", [signal.SIG_IGN, lambda *_: None])
def test_another_handler_of_interrupts_stays(handler: Any) -> None:
    """A job in the background ignores interrupts."""
    before = signal.signal(signal.SIGINT, handler)
    try:
        with interrupts_handled_by(lambda *_: None):
            assert signal.getsignal(signal.SIGINT) is handler
        assert signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.signal(signal.SIGINT, before)
