"""The command that reads the files of tasks and counts rows."""

from __future__ import annotations

from pathlib import Path

from tasks.check_files import main
from tests.support.commands import call
from tests.support.task_files import write


def test_a_bad_task_does_not_stop_the_others_and_bad_rows_can_be_skipped(tmp_path: Path) -> None:
    header = "index\tsentence1\tsentence2\tlabel\n"
    bad = [
        write(tmp_path / "SST-2" / "train.tsv", "sentence\tlabel\nfine\tgood\n"),
        write(tmp_path / "WNLI" / "dev.tsv", f"{header}0\ta\tb\tgood\n"),
    ]
    good = write(tmp_path / "RTE" / "dev.tsv", f"{header}0\ta\tb\tentailment\n")
    done = call(main, "sst2", "wnli", "rte", "--data", str(tmp_path))
    assert (done.returncode, done.stdout) == (2, f"rte dev: rows 1, examples 1 ({good})\n")
    errors = done.stderr.splitlines()
    assert len(errors) == 2
    for name, path, error in zip(("sst2", "wnli"), bad, errors, strict=True):
        assert error.startswith(f"error: {name}: {path}:2: the label 'good' is none of the task's: ")
    path = write(tmp_path / "train.tsv", "sentence\tlabel\nfine\tgood\nfine\t1\n")
    skipped = call(main, "sst2", "--data", str(tmp_path), "--on_bad_row", "skip").stdout.splitlines()
    assert skipped[2].strip().startswith(f"{path}:2: the label 'good'")


def test_every_split_that_is_there_is_counted_and_a_folder_without_files_is_named(tmp_path: Path) -> None:
    assert "has the files of no task" in call(main, "--data", str(tmp_path)).stderr
    assert "looked for train-v1.1.json (also looked" in call(main, "squad1", "--data", str(tmp_path)).stderr
    train = write(tmp_path / "SST-2" / "train.tsv", "sentence\tlabel\nfine \t1\n")
    dev = write(tmp_path / "RTE" / "dev.tsv", "index\tsentence1\tsentence2\tlabel\n0\ta\tb\tentailment\n")
    done = call(main, "--data", str(tmp_path))
    assert done.stdout.splitlines() == [
        f"sst2 train: rows 1, examples 1 ({train})",
        f"rte dev: rows 1, examples 1 ({dev})",
    ]
    assert call(main, "rte", "--data", str(tmp_path)).stdout.splitlines() == done.stdout.splitlines()[1:]
