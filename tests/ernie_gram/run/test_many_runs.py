"""Many commands: at most some at a time, statuses, output, and their end with the process that runs them."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from ernie_gram.run.many_runs import CONSOLE, Command, last_error, run_all
from tests.support.commands import kill_when


def command(folder: Path, script: str) -> Command:
    return Command(folder.name, folder, ("sh", "-c", script))


def test_commands_run_in_order_and_their_statuses_are_reported(tmp_path: Path) -> None:
    scripts = {"a": "echo one; echo 'error: bad'; echo end; exit 3", "b": "echo $NPROC $OMP_NUM_THREADS", "c": "exit 0"}
    ended: list[tuple[str, int]] = []
    commands = [command(tmp_path / name, script) for name, script in scripts.items()]
    run_all(commands, 1, 2, lambda done, status: ended.append((done.name, status)))
    assert ended == [("a", 3), ("b", 0), ("c", 0)]
    assert last_error(tmp_path / "a") == "error: bad"
    threads = max(1, (os.cpu_count() or 1) // 2)
    assert (tmp_path / "b" / CONSOLE).read_text() == f"2 {threads}\n" == f"{last_error(tmp_path / 'b')}\n"


def test_at_most_some_commands_run_at_a_time(tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    script = f"touch {marks}/$$; ls {marks} | wc -l; sleep 0.3; rm {marks}/$$"
    commands = [command(tmp_path / str(number), script) for number in range(4)]
    run_all(commands, 2, 1, lambda done, status: None)
    assert {int(last_error(each.folder)) for each in commands} <= {1, 2}


def test_an_error_at_the_end_of_a_command_stops_the_others(tmp_path: Path) -> None:
    def ended(done: Command, status: int) -> None:
        raise ValueError(done.name)

    began = time.monotonic()
    with pytest.raises(ValueError, match="short"):
        run_all([command(tmp_path / "long", "exec sleep 60"), command(tmp_path / "short", "exit 0")], 2, 1, ended)
    assert time.monotonic() - began < 30


def test_a_killed_process_leaves_no_command_behind(tmp_path: Path) -> None:
    program = (
        "from pathlib import Path\n"
        "from ernie_gram.run.many_runs import Command, run_all\n"
        f"folder = Path({str(tmp_path / 'run')!r})\n"
        "command = Command('run', folder, ('sh', '-c', 'echo $$ > ' + str(folder / 'pid') + '; exec sleep 60'))\n"
        "run_all([command], 1, 1, print)\n"
    )
    pid = tmp_path / "run" / "pid"
    # Only the process that started the command is killed, not its group.
    script = f"import os, signal, subprocess, sys, time\np = subprocess.Popen([sys.executable, '-c', {program!r}])\n"
    script += f"while not os.path.isfile({str(pid)!r}): time.sleep(0.01)\np.kill(); p.wait(); time.sleep(60)\n"
    ended: list[bool] = []

    def is_over() -> bool:
        try:
            os.kill(int(pid.read_text()), 0)
        except (OSError, ValueError):
            ended.append(pid.is_file() and pid.read_text() != "")
        return bool(ended and ended[-1])

    kill_when(["-c", script], is_over)
    assert ended[-1]
