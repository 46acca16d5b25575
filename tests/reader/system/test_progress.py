"""Progress on a terminal and in a log. The streams here are replaced; the bars are tqdm's."""

from __future__ import annotations

import io
import os
import re
import sys
import threading
from collections.abc import Callable

import pytest

from reader.errors import write_or_drop
from reader.system import progress as module
from reader.system.progress import progress, show_progress


class Stream(io.StringIO):
    """A standard stream that is a terminal or not."""

    encoding = "utf-8"

    def __init__(self, is_terminal: bool) -> None:
        super().__init__()
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal


@pytest.fixture
def errors(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], Stream]:
    """Replace standard error, given whether it is a terminal; lines of a log are due at once."""
    from tqdm import tqdm

    # What TQDM_DISABLE=1 has set for the tests when tqdm was imported.
    original = tqdm.__init__
    monkeypatch.setattr(tqdm, "__init__", lambda *values, **more: original(*values, **{"disable": False, **more}))
    monkeypatch.setattr(module, "_is_shown", True)
    monkeypatch.setattr(module, "LINE_SECONDS", 1e-9)

    def replace(is_terminal: bool) -> Stream:
        stream = Stream(is_terminal)
        monkeypatch.setattr(sys, "stderr", stream)
        return stream

    return replace


def screen(written: str) -> list[str]:
    """Return the lines that a terminal shows."""
    return [re.sub(r".*\r(?=.)", "", line).rstrip() for line in written.rstrip("\r").split("\n")]


def test_a_log_gets_lines_with_rate_and_time_left_and_a_bar_breaks_no_line_and_vanishes(
    errors: Callable[[bool], Stream],
) -> None:
    err = errors(False)
    with progress("encoding train", 100, " texts", first=5) as bar:
        bar.update(20)
        write_or_drop(sys.stderr, "a line of the command\n")
    line, other = err.getvalue().splitlines()
    assert re.fullmatch(r"encoding train:  25% 25/100 \[00:00<00:00, *[\d.]+ texts/s\]", line)
    assert other == "a line of the command"
    err = errors(True)
    with progress("training", 10, " steps") as bar:
        for step in range(3):
            bar.update(1)
            write_or_drop(sys.stderr, f"step {step}\n")
            assert screen(err.getvalue())[-1].startswith(f"training:  {step + 1}0%|")
    assert screen(err.getvalue()) == ["step 0", "step 1", "step 2", ""]


def test_other_ranks_and_programs_have_no_bar_and_none_a_thread(
    errors: Callable[[bool], Stream], monkeypatch: pytest.MonkeyPatch
) -> None:
    err = errors(True)
    show_progress(False)
    with progress("loading", 2, "B") as bar:
        bar.update(1)
    assert err.getvalue() == ""
    show_progress()
    monkeypatch.setattr(sys, "stderr", None)
    with progress("loading", 2, "B") as bar:
        bar.update(1)
    # A process that is forked while it draws would wait forever for a lock.
    errors(True)
    for name, value in (("monitor", None), ("monitor_interval", 10)):  # as when tqdm is imported
        monkeypatch.setattr(f"tqdm.tqdm.{name}", value)
    before = threading.active_count()
    with progress("reading", 3, " rows"):
        assert threading.active_count() == before
        child = os.fork()
        if not child:
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
