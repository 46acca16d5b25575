"""Progress on a terminal and in a log. The streams here are replaced; the display and its thread are real."""

from __future__ import annotations

import io
import os
import re
import sys
import threading
import time
from collections.abc import Callable

import pytest

from reader.system import progress as module
from reader.system.progress import Phase, hide_progress, progress
from tests.support.commands import python


class Stream(io.StringIO):
    """A standard stream that is a terminal or not."""

    encoding = "utf-8"

    def __init__(self, is_terminal: bool) -> None:
        super().__init__()
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal


Streams = tuple[Stream, Stream]


@pytest.fixture
def open_streams(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool, bool], Streams]:
    """Replace standard output and standard error, given whether they are terminals; lines are due at once."""

    def replace(*are_terminals: bool) -> Streams:
        out, err = map(Stream, are_terminals)
        monkeypatch.setattr(sys, "stdout", out)
        monkeypatch.setattr(sys, "stderr", err)
        monkeypatch.delenv("TQDM_DISABLE", raising=False)
        monkeypatch.setenv("COLUMNS", "80")
        monkeypatch.setattr(module, "REDRAW_SECONDS", 0.005)
        monkeypatch.setattr(module, "FIRST_SECONDS", 0.0)
        monkeypatch.setattr(module, "_display", module._Display())
        return out, err

    return replace


def screen(written: str) -> list[str]:
    """Return the lines that a terminal shows."""
    lines, column = [""], 0
    for part in re.findall(r"\x1b\[K|\r|\n|[^\x1b\r\n]+", written):
        if part == "\n":
            lines.append("")
        elif part == "\x1b[K":
            lines[-1] = lines[-1][:column]
        elif part != "\r":
            lines[-1] = lines[-1][:column] + part + lines[-1][column + len(part) :]
            column += len(part)
            continue
        column = 0 if part != "\x1b[K" else column
    return lines


def wait_until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def test_a_log_gets_one_line_with_rate_and_time_left(open_streams: Callable[[bool, bool], Streams]) -> None:
    out, err = open_streams(False, False)
    with progress("checking"), progress("encoding train", 100, " texts") as phase:
        phase.advance(10)
        phase.advance(15)
        wait_until(err.getvalue)
        print("a line of the command")
        time.sleep(0.1)
    assert re.fullmatch(r"encoding train:  25% 25/100 \[00:0\d<\d\d:\d\d, *[\d.]+ texts/s\]\n", err.getvalue())
    assert out.getvalue() == "a line of the command\n"


def test_the_first_units_do_not_count_in_the_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    phase = Phase("training", 100, " steps", done=10, began=now)
    now += 40  # compiles
    phase.advance(1)
    assert phase.text() == "training:  11% 11/100 [00:40<?, ? steps/s]"
    now += 1
    phase.advance(4)
    assert phase.text() == "training:  15% 15/100 [00:41<00:21,  4.00 steps/s]"


def test_lines_become_rarer(open_streams: Callable[[bool, bool], Streams], monkeypatch: pytest.MonkeyPatch) -> None:
    _, err = open_streams(False, False)
    monkeypatch.setattr(module, "LINE_SECONDS", 0.0)
    with progress("reading"):
        wait_until(lambda: err.getvalue().count("\n") == 3)
        # A tenth of the time so far is now longer than this test.
        module._display._started -= 1e6
        module._display._next_line = 0.0
        wait_until(lambda: err.getvalue().count("\n") == 4)
        time.sleep(0.1)
    assert re.fullmatch(r"(reading \[00:0\d\]\n){4,5}", err.getvalue())


def test_a_short_phase_shows_nothing(
    open_streams: Callable[[bool, bool], Streams], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, err = open_streams(False, False)
    monkeypatch.setattr(module._display, "_next_line", time.monotonic() + 1e6)
    with progress("reading"):
        time.sleep(0.1)
    assert err.getvalue() == ""


@pytest.mark.parametrize("is_terminal", [False, True])
def test_a_bar_breaks_no_line_and_vanishes(open_streams: Callable[[bool, bool], Streams], is_terminal: bool) -> None:
    out, err = open_streams(is_terminal, True)
    if is_terminal:
        err = sys.stderr = out  # both are the same terminal
    shown: list[list[str]] = []
    with progress("training", 10, " steps") as phase:
        for step in range(3):
            phase.advance(1)
            print(f"step {step}")
            print("warning: unusual", file=sys.stderr)
            wait_until(lambda: err.getvalue()[-1] != "\n")
            shown.append(screen(err.getvalue()))
            err_before = err.getvalue()
            wait_until(lambda before=err_before: err.getvalue() != before)
    assert [lines[-1].startswith(f"training:  {n}0%|") for n, lines in enumerate(shown, 1)] == [True] * 3
    assert all(len(lines[-1]) < 80 and "steps/s" in lines[-1] for lines in shown)
    steps = [f"step {step}" for step in range(3)]
    both = [line for step in steps for line in (step, "warning: unusual")]
    assert screen(err.getvalue()) == [*(both if is_terminal else ["warning: unusual"] * 3), ""]
    if not is_terminal:
        assert out.getvalue().splitlines() == steps
    assert (sys.stdout, sys.stderr) == (out, err)


def test_a_line_that_is_not_finished_is_left_alone(open_streams: Callable[[bool, bool], Streams]) -> None:
    _, err = open_streams(False, True)
    with progress("reading"):
        wait_until(err.getvalue)
        print("a question? ", end="", file=sys.stderr)
        time.sleep(0.05)
        print("yes", file=sys.stderr)
    assert screen(err.getvalue()) == ["a question? yes", ""]


def test_a_terminal_that_is_not_utf8_gets_ascii(
    open_streams: Callable[[bool, bool], Streams], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Stream, "encoding", "ascii")
    _, err = open_streams(False, True)
    with progress("reading", 3, " rows") as phase:
        phase.advance(1)
        wait_until(lambda: "1/3" in err.getvalue())
    assert err.getvalue().isascii()


def test_other_ranks_and_users_who_do_not_want_it_see_nothing(
    open_streams: Callable[[bool, bool], Streams], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, err = open_streams(False, True)
    with progress("loading"):
        wait_until(err.getvalue)
        hide_progress()
        shown = err.getvalue()
        time.sleep(0.05)
    with progress("reading"):
        time.sleep(0.05)
    monkeypatch.setenv("TQDM_DISABLE", "1")
    monkeypatch.setattr(module, "_display", module._Display())
    with progress("reading"):
        time.sleep(0.05)
    assert err.getvalue() == shown
    assert screen(shown) == [""]


def test_a_bar_without_standard_output(
    open_streams: Callable[[bool, bool], Streams], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python has none if it was closed before."""
    _, err = open_streams(False, True)
    monkeypatch.setattr(sys, "stdout", None)
    with progress("reading"):
        wait_until(err.getvalue)


def test_no_process_is_forked_while_the_bar_is_drawn(open_streams: Callable[[bool, bool], Streams]) -> None:
    """Its standard error would stay locked."""
    open_streams(False, True)
    drawing, drawn = threading.Event(), threading.Event()

    def draw() -> None:
        with module._display.lock:
            drawing.set()
            time.sleep(0.2)
            drawn.set()

    threading.Thread(target=draw).start()
    drawing.wait()
    child = os.fork()
    if not child:
        os._exit(not (drawn.is_set() and module._display.is_hidden and module._display.lock.acquire(timeout=5)))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert module._display.lock.acquire(timeout=5)
    module._display.lock.release()


def test_a_fork_waits_for_no_thread_that_imports() -> None:
    """The import of tqdm takes the lock of `logging`, which a fork holds while it waits for the thread."""
    code = """
import importlib.metadata, os, time
from reader.system import progress as module
import logging

version = importlib.metadata.version
importlib.metadata.version = lambda name: time.sleep(1) or version(name)  # tqdm calls it
module.show_progress()
module._display._next_line = 0.0
with module.progress("counting"):
    time.sleep(module.REDRAW_SECONDS + 0.3)
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
"""
    done = python("-c", code, TQDM_DISABLE=None, timeout=60)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert re.fullmatch(r"counting \[00:0\d\]\n", done.stderr)


def test_an_interrupted_phase_ends(open_streams: Callable[[bool, bool], Streams]) -> None:
    _, err = open_streams(False, True)

    def interrupted() -> None:
        with progress("reading"):
            wait_until(err.getvalue)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert module._display.phases == []
    assert screen(err.getvalue()) == [""]
