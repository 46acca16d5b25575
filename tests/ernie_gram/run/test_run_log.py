"""The log of a run: what a resumed run keeps, what reading skips, and which rank writes."""

from __future__ import annotations

import builtins
import json
import resource
import signal
import time
from pathlib import Path

import pytest

from ernie_gram.run.run_log import RESULTS, RunLog, append_result, last_evaluation, read_log, read_results


def test_resuming_removes_records_after_the_checkpoint(tmp_path: Path) -> None:
    log = RunLog(tmp_path, True, visualdl=True, start=0, max_steps=20)
    for step in (0, 10, 20):
        log.record("eval", step, {"perplexity": 100.0 - step, "frequency_perplexity": 50.0})
        log.record("train", step, {"loss": 5.0 - step / 10})
    log.close()
    assert list((tmp_path / "visualdl").glob("vdlrecords*"))
    RunLog(tmp_path, True, visualdl=False, start=10, max_steps=20).close()
    assert [record["step"] for record in read_log(tmp_path)] == [0, 0, 10, 10]
    # Without a checkpoint the run starts anew, and evaluates the start again.
    RunLog(tmp_path, True, visualdl=False, start=0, max_steps=20).close()
    assert read_log(tmp_path) == []
    # Only the first rank writes.
    log = RunLog(tmp_path / "other", False, visualdl=True, start=0, max_steps=20)
    log.record("train", 1, {"loss": 1.0})
    log.close()
    assert not (tmp_path / "other").exists()


def test_visualdl_reads_the_whole_curve_of_each_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from visualdl import LogReader
    from visualdl.server.lib import get_logs, get_scalar

    # A run that was resumed, and one whose folder has the same name.
    for number, (parent, start) in enumerate((("a", 0), ("b", 0), ("a", 10))):
        (tmp_path / parent / "model").mkdir(parents=True, exist_ok=True)
        monkeypatch.setattr(time, "time", lambda number=number: 1e9 + number)  # it names the file
        log = RunLog(tmp_path / parent / "model", True, visualdl=True, start=start, max_steps=20)
        log.record("train", start + 10, {"loss": float(number)})
        log.close()
    reader = LogReader(str(tmp_path))
    found = get_logs(reader, "scalar")
    curves = {
        Path(run).relative_to(tmp_path).as_posix(): [(step, value) for _, step, value in get_scalar(reader, run, *tags)]
        for run, tags in zip(found["runs"], found["tags"], strict=True)
        if str(tmp_path) in run
    }
    assert curves == {"a/model/visualdl": [(10, 0.0), (20, 2.0)], "b/model/visualdl": [(10, 1.0)]}


def test_the_last_evaluation_is_the_newest_up_to_a_step(tmp_path: Path) -> None:
    records = [{"kind": kind, "step": step} for step in (0, 5, 9) for kind in ("eval", "train")]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    for max_step, found in ((None, 9), (9, 9), (8, 5), (5, 5), (0, 0)):
        assert last_evaluation(tmp_path, max_step) == {"kind": "eval", "step": found}
    assert last_evaluation(tmp_path, -1) is None
    assert last_evaluation(tmp_path / "nowhere") is None
    with (tmp_path / "log.jsonl").open("a") as log:
        log.write('{"kind": "tra')
    assert read_log(tmp_path) == records  # without a truncated last line


def test_a_result_after_half_a_line_is_a_line_of_its_own(tmp_path: Path) -> None:
    records = {name: {"run": name, "result": {"score": 1.0}} for name in ("a", "é")}
    append_result(tmp_path, records["a"])
    with (tmp_path / RESULTS).open("ab") as file:
        file.write('{"run": "é'.encode()[:-1])  # the command was killed within a character
    append_result(tmp_path, records["é"])
    assert read_results(tmp_path) == records


def test_a_run_without_a_writable_home_directory_continues_without_visualdl(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """VisualDL creates a folder in the home directory when it is imported."""
    original = builtins.__import__

    def import_(name: str, *arguments: object, **options: object) -> object:
        if name == "visualdl":
            raise OSError(30, "Read-only file system", "/home/user/.visualdl")
        return original(name, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", import_)
    log = RunLog(tmp_path, True, visualdl=True, start=0, max_steps=20)
    for step in (10, 20):
        log.record("train", step, {"loss": 1.0})
    log.close()
    assert len(read_log(tmp_path)) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("cannot write its files: /home/user/.visualdl: Read-only file system")


def test_lines_that_a_full_disk_refuses_are_written_later_in_order(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file may have 70 bytes at most, which is less than two lines, for some time."""
    unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    log = RunLog(tmp_path, True, visualdl=False, start=0, max_steps=20)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (70, unlimited[1]))
        for step in range(5):
            log.record("train", step, {"loss": 1.0})
        assert len(read_log(tmp_path)) == 1
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
        signal.signal(signal.SIGXFSZ, handler)
    assert "log.jsonl: File too large; its lines are kept" in capsys.readouterr().err
    log.record("train", 5, {"loss": 1.0})
    assert [record["step"] for record in read_log(tmp_path)] == [*range(6)]
    log.close()
    assert len(read_log(tmp_path)) == 6
