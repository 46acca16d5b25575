"""Experiments: how many runs train at a time, failed runs, the file of results, and a process that is killed."""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from ernie_gram.experiments import processes
from ernie_gram.experiments.experiment import append_result, experiment_parser, parse_experiment, run_experiment
from ernie_gram.experiments.planned_run import PlannedRun, Result
from ernie_gram.experiments.processes import CONSOLE, last_error, time_left, train_all, train_each
from ernie_gram.experiments.tables import Finished, spread_of
from ernie_gram.run.run_folder import lock_output
from reader.errors import InputError
from reader.system.processes import available_cores
from tests.support.commands import ROOT, call, kill_when


@dataclass
class Section:
    output: str = ""
    learning_rate: float = 0.1


@dataclass
class Config:
    paths: Section = field(default_factory=Section)
    optimizer: Section = field(default_factory=Section)


@dataclass(frozen=True, eq=False)
class ShellRun(PlannedRun):
    """A script of the shell, whose result is what it writes into the file `result` of its folder."""

    @property
    def command(self) -> list[str]:
        return ["sh", "-c", f"cd {self.folder}; {self.arguments[0]}"]

    def result(self) -> Result | None:
        path = self.folder / "result"
        return {"score": float(path.read_text()), "steps": 3} if path.is_file() else None


def planned(folder: Path, script: str, **varied: str) -> ShellRun:
    return ShellRun(folder, varied, 1, "", (script,), Config(paths=Section(str(folder))))


def test_runs_train_in_order_and_their_results_are_reported(tmp_path: Path) -> None:
    scripts = {
        "a": "echo one; echo 'error: bad'; echo end; exit 3",
        "b": "echo $NPROC $OMP_NUM_THREADS; echo 1 > result",
        "c": "echo 1 > result; exit 4",
    }
    ended = train_each([planned(tmp_path / name, script) for name, script in scripts.items()], 1, 2)
    assert [(run.name, result) for run, result, _ in ended] == [
        ("a", None),
        ("b", {"score": 1, "steps": 3}),
        ("c", None),
    ]
    assert last_error(tmp_path / "a") == "error: bad"
    threads = max(1, available_cores() // 2)
    assert (tmp_path / "b" / CONSOLE).read_text() == f"2 {threads}\n" == f"{last_error(tmp_path / 'b')}\n"


def test_fewer_runs_than_jobs_have_more_threads_each(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(processes, "available_cores", lambda: 12)
    runs = [planned(tmp_path / name, "echo $OMP_NUM_THREADS > result") for name in ("a", "b")]
    assert [result for _, result, _ in train_each(runs, 4, 1)] == [{"score": 6, "steps": 3}] * 2


def test_the_error_of_an_earlier_attempt_is_not_that_of_the_last_one(tmp_path: Path) -> None:
    for script in ("echo 'error: a wrong path'; exit 2", "kill -9 $$"):
        [_] = train_each([planned(tmp_path / "a", script)], 1, 1)
    assert last_error(tmp_path / "a") == "no output"


def test_options_of_runs_may_come_before_the_arguments(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    parser = experiment_parser("")
    parser.add_argument("task")
    parser.add_argument("model")
    options_of_runs = ["--input.max_seq_len", "64", "--on_bad_row", "skip", "cola", "--optimizer.epochs=3"]
    command = ["--jobs", "2", *options_of_runs, "M", "--output", str(tmp_path / "o")]
    monkeypatch.setattr(sys, "argv", ["sweep", *command])
    options, overrides = parse_experiment(parser)
    assert (options.task, options.model, options.jobs) == ("cola", "M", 2)
    assert overrides == ["--input.max_seq_len=64", "--on_bad_row=skip", "--optimizer.epochs=3"]


def test_at_most_some_runs_train_at_a_time(tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    script = f"touch {marks}/$$; ls {marks} | wc -l; sleep 0.3; rm {marks}/$$"
    runs = [planned(tmp_path / str(number), script) for number in range(4)]
    assert all(seconds >= 0.3 for _, _, seconds in train_each(runs, 2, 1))
    assert {int(last_error(run.folder)) for run in runs} <= {1, 2}


def test_runs_at_the_same_time_see_gpus_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    there = "4\n"
    monkeypatch.setattr(processes, "run_module", lambda *_: there)

    def seen(jobs: int, ranks: int) -> list[str | None]:
        return [share.get("CUDA_VISIBLE_DEVICES") for share in processes.shares_of_gpus(jobs, ranks)]

    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert seen(2, 1) == ["0", "1"]
    assert seen(2, 2) == ["0,1", "2,3"]
    assert seen(3, 2) == ["0,1", "2,3", "0,1"]
    assert seen(1, 2) == [None]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5,GPU-a7,2,3")
    assert seen(2, 1) == ["5", "GPU-a7"]
    monkeypatch.setenv("LAUNCH_ARGS", "--devices 1,2")
    assert seen(2, 1) == [None, None]
    monkeypatch.delenv("LAUNCH_ARGS")
    there = "0\n"
    assert seen(2, 1) == [None, None]


def test_a_run_has_the_gpus_of_the_run_that_has_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "run_module", lambda *_: "2\n")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    show = "echo $CUDA_VISIBLE_DEVICES"
    scripts = [f"{show}; until [ -e ../2/end ]; do sleep 0.05; done", show, f"{show}; touch end"]
    runs = [planned(tmp_path / str(i), script) for i, script in enumerate(scripts)]
    assert len(list(train_each(runs, 2, 1))) == 3
    assert [last_error(run.folder) for run in runs] == ["0", "1", "1"]


def test_a_run_starts_when_the_one_that_it_needs_has_ended_and_not_at_all_if_that_failed(tmp_path: Path) -> None:
    first = "sleep 0.3; echo 1 > result"
    scripts = {"a": first, "after_a": "cat ../a/result", "b": "exit 3", "after_b": "", "c": "exit 0"}
    runs = {name: planned(tmp_path / name, script) for name, script in scripts.items()}
    needs = {runs["after_a"]: runs["a"], runs["after_b"]: runs["b"]}
    ended = list(train_each(list(runs.values()), 2, 1, needs, threads=7))
    assert sorted((run.name, result is None) for run, result, _ in ended) == [
        ("a", False),
        ("after_a", True),
        ("b", True),
        ("c", True),
    ]


def test_no_run_starts_after_one_without_a_result(tmp_path: Path) -> None:
    scripts = {"a": "exit 0", "b": "echo 1 > result", "c": "echo 2 > result", "d": "echo 3 > result"}
    runs = {name: planned(tmp_path / name, script) for name, script in scripts.items()}
    needs, recorded = {runs["b"]: runs["a"], runs["c"]: runs["b"]}, list[str]()
    failed = train_all(list(runs.values()), 1, 1, lambda run, _: recorded.append(run.name), needs)
    assert recorded == ["d"]
    (line,) = failed
    assert line.startswith(f"{tmp_path / 'a' / CONSOLE}: the run failed: ")
    assert not (tmp_path / "b").exists()
    assert not (tmp_path / "c").exists()


def test_the_time_left_is_that_of_the_kinds_of_runs_that_are_left(tmp_path: Path) -> None:
    class ShortRun(ShellRun):
        pass

    long, short = planned(tmp_path, ""), ShortRun(tmp_path, {}, 1, "", ("",), None)
    spent: dict[type[PlannedRun], list[float]] = {ShellRun: [3000.0, 3600.0]}
    assert time_left([long, short], spent, 1) == ""  # nothing is known of short runs
    spent[ShortRun] = [60.0]
    assert time_left([long, short, short], spent, 1) == "; about 57 min left"
    assert time_left([long, short, short, short], spent, 2) == "; about 29 min left"
    assert time_left([short], spent, 2) == "; about 1 min left"
    assert time_left([], spent, 2) == ""


def test_a_killed_process_leaves_no_run_behind(tmp_path: Path) -> None:
    pid = tmp_path / "run" / "pid"
    program = (
        "from pathlib import Path\n"
        "from ernie_gram.experiments.processes import train_each\n"
        "from tests.ernie_gram.experiments.test_experiment import planned\n"
        f"list(train_each([planned(Path({str(tmp_path / 'run')!r}), 'echo $$ > pid; exec sleep 60')], 1, 1))\n"
    )
    # Only the process that started the run is killed, not its group.
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


def report(finished: Finished, output: Path) -> str:
    return f"{[run.name for run, _ in finished]}\n"


def options(output: Path) -> argparse.Namespace:
    return argparse.Namespace(output=output, jobs=1, processes=1, check=False)


def results(output: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (output / "results.jsonl").read_text().splitlines()]


def test_a_failed_run_stops_no_other_and_finished_runs_are_not_repeated(tmp_path: Path) -> None:
    output = tmp_path / "all"
    scripts = {"a": "echo 1 >> result", "b": "echo 'error: full'; exit 2", "c": "echo 0.5 >> result"}
    runs = [planned(output / name, script, rate=name) for name, script in scripts.items()]
    done = call(lambda: run_experiment(runs, options(output), report))
    message = (
        f"error: {output / 'b' / CONSOLE}: the run failed: error: full; the same command runs the failed ones again"
    )
    assert (done.returncode, done.stderr) == (2, f"{message}\n")
    lines = done.stdout.splitlines()
    assert lines[0] == "3 runs, 0 finished before; 1 at a time"
    assert [line.partition(";")[0] for line in lines if line[:4] in ("done", "fail")] == [
        "done  a: score 1.00",
        "fail  b: error: full",
        "done  c: score 0.50",
    ]
    assert (output / "table.md").read_text() == "['a', 'c']\n"
    assert [(each["run"], each["varied"], each["result"]) for each in results(output)] == [
        ("a", {"rate": "a"}, {"score": 1.0, "steps": 3}),
        ("c", {"rate": "c"}, {"score": 0.5, "steps": 3}),
    ]
    # The settings, without the folder, are the same.
    assert len({each["digest"] for each in results(output)}) == 1
    assert results(output)[0]["settings"] == {"paths.learning_rate": 0.1} | {
        f"optimizer.{key}": value for key, value in vars(Section()).items()
    }
    done = call(lambda: run_experiment([runs[0], runs[2]], options(output), report))
    assert (done.returncode, done.stderr) == (0, "")
    assert "2 runs, 2 finished before" in done.stdout
    assert len(results(output)) == 2
    assert (output / "a" / "result").read_text() == "1\n"
    with (output / "table.csv").open(newline="") as file:
        assert list(csv.DictReader(file))[1] == {"run": "c", "rate": "c", "seed": "1", "score": "0.5", "steps": "3"}


def test_a_folder_in_which_another_experiment_runs_is_refused(tmp_path: Path) -> None:
    with lock_output(tmp_path / "all", "--output"):
        done = call(lambda: run_experiment([planned(tmp_path / "all" / "a", "")], options(tmp_path / "all"), report))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert done.stderr.startswith(f"error: --output: {tmp_path / 'all'} is in use by process {os.getpid()} on ")


def test_an_error_of_the_caller_stops_the_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def damaged(run: ShellRun) -> None:
        if (run.folder / "short").exists():
            raise InputError("damaged")

    monkeypatch.setattr(ShellRun, "result", damaged)
    runs = [planned(tmp_path / "long", "echo $$ > pid; exec sleep 60"), planned(tmp_path / "b", "touch short")]
    both = argparse.Namespace(output=tmp_path, jobs=2, processes=1, check=False)
    assert call(lambda: run_experiment(runs, both, report)).stderr == "error: damaged\n"
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "long" / "pid").read_text()), 0)


@pytest.mark.parametrize("hook", ["", "os.register_at_fork(after_in_parent=lambda: os.kill(os.getpid(), 15))"])
def test_sigterm_ends_the_runs(tmp_path: Path, hook: str) -> None:
    """Python drops an exception that the handler of a signal raises in a hook of a fork."""
    pid = tmp_path / "run" / "pid"
    program = (
        "import os, sys\n"
        "from pathlib import Path\n"
        "from tests.ernie_gram.experiments.test_experiment import options, planned, report, run_experiment\n"
        f"folder = Path(sys.argv[1])\n{hook}\n"
        "run_experiment([planned(folder / 'run', 'echo $$ > pid; exec sleep 60')], options(folder), report)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], cwd=ROOT) as process:
        while process.poll() is None and not (pid.is_file() and pid.read_text()):
            time.sleep(0.02)
        if not hook:
            process.terminate()
    assert process.returncode == 143
    if hook and not (pid.is_file() and pid.read_text()):  # ended before it wrote
        return
    # A process that has ended is there until the system's first process has noticed it.
    deadline = time.monotonic() + 10
    while Path("/proc", pid.read_text().strip()).exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


def test_a_smaller_error_is_better() -> None:
    assert spread_of([0.2, 0.1, 0.6], "min")[:5] == (3, pytest.approx(0.3), 0.2, 0.1, 0.6)


def test_half_a_line_of_a_killed_command_does_not_spoil_the_next(tmp_path: Path) -> None:
    target, run = tmp_path / "results.jsonl", planned(tmp_path / "run", "")
    target.write_text('{"run": "ha')
    for _ in range(2):
        append_result(run, {"score": 1.0}, target)
    half, whole = target.read_text().splitlines()
    assert half == '{"run": "ha'
    assert json.loads(whole)["run"] == "run"


def test_half_a_character_of_a_killed_command_does_not_spoil_the_next(tmp_path: Path) -> None:
    target, run = tmp_path / "results.jsonl", planned(tmp_path / "run", "")
    half = '{"run": "名'.encode()[:-1]
    target.write_bytes(half)
    for _ in range(2):
        append_result(run, {"score": 1.0}, target)
    first, whole = target.read_bytes().splitlines()
    assert first == half
    assert json.loads(whole)["run"] == "run"
