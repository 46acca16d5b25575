"""A command in a process of its own: its lines, its errors, and its end when nobody reads them any more."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import pytest

from reader.errors import InputError
from reader.system.child_commands import lines_of_module

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
