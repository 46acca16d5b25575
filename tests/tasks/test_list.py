"""The list of tasks, and the launcher, which shows it and gives the registry's advice on an unknown task."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tasks.list import main
from tasks.registry import TASKS
from tests.support.commands import ROOT, call, shell
from tests.support.task_files import write


def launch(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the launcher from the root of the file system."""
    return shell(str(ROOT / "run_finetune.sh"), *arguments, cwd="/", **environment)


def rows_of(text: str) -> dict[str, str]:
    """Return the lines of each task, joined, by its name."""
    assert max(map(len, text.splitlines())) <= 120
    rows = (" ".join(row.split()) for row in re.split(r"\n(?! )", text.rstrip()))
    return {row.split()[0]: row for row in rows}


def test_every_task_has_a_line_with_its_metric_and_files() -> None:
    rows = rows_of(call(main).stdout)
    assert [*rows] == ["task", *TASKS]
    assert rows["cola"].split() == (
        ["cola", "CoLA", "classification", "en", "matthews", "train.tsv,", "dev.tsv,", "test.tsv"]
    )


def test_all_alternatives_of_the_files_are_shown() -> None:
    rows = rows_of(call(main).stdout)
    assert "c3-d-train.json + c3-m-train.json | d-train.json + m-train.json, c3-d-dev.json" in rows["c3"]
    assert ", dev.tsv | xnli.dev.tsv, test.tsv" in rows["xnli"]
    for name, task in TASKS.items():
        sources = [source for split in task.splits.values() for source in split.sources]
        assert all(" + ".join(source.files) in rows[name] for source in sources)


def test_the_splits_that_are_in_a_folder_are_shown_before_the_files(tmp_path: Path) -> None:
    write(tmp_path / "SST-2" / "dev.tsv", "sentence\tlabel\n")
    write(tmp_path / "SST-2" / "test.tsv", "index\tsentence\n")
    rows = rows_of(call(main, "--data", str(tmp_path)).stdout)
    assert rows["task"].split()[-2:] == ["found", "files"]
    assert rows["sst2"].split()[4:8] == ["accuracy", "dev", "test", "train.tsv,"]
    assert rows["chid"].split()[4:6] == ["accuracy_by_id", "-"]


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    done = call(main, "--data", str(tmp_path / "typo"))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: --data: {tmp_path / 'typo'}: no such folder")


def test_the_launcher_passes_options_to_the_list(tmp_path: Path) -> None:
    write(tmp_path / "SST-2" / "dev.tsv", "sentence\tlabel\n")
    expected = call(main, "--data", str(tmp_path)).stdout
    assert launch("--list", "--data", str(tmp_path)).stdout == expected
    assert launch("--list", DATA=str(tmp_path)).stdout == expected
    assert launch("--list").stdout == call(main).stdout


@pytest.mark.parametrize("processes", ["1", "2"])
def test_the_launcher_gives_the_most_similar_name_for_an_unknown_task(tmp_path: Path, processes: str) -> None:
    done = launch("colla", str(tmp_path), DATA=str(tmp_path), NPROC=processes, LOG_DIR=str(tmp_path / "log"))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: no task 'colla'; did you mean cola? (the tasks: mnli, ")
    assert done.stderr.count("\n") == 1


def test_the_launcher_has_the_settings_of_a_known_task(tmp_path: Path) -> None:
    done = launch("cola", str(tmp_path), "--print_config", DATA=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "task: cola" in done.stdout
    # The default is 3.
    assert "epochs: 10" in done.stdout


def test_the_launcher_takes_a_file_of_settings_in_place_of_a_task(tmp_path: Path) -> None:
    own = write(tmp_path / "own.yaml", f"base: {ROOT / 'conf' / 'tasks' / 'cola.yaml'}\noptimizer: {{epochs: 7}}\n")
    done = launch(str(own), str(tmp_path), "--print_config", DATA=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "task: cola" in done.stdout
    assert "epochs: 7" in done.stdout
    # DATA is a default: the file comes first.
    assert f"data: {tmp_path}\n" in done.stdout
    with_data = write(tmp_path / "data.yaml", "task: cola\npaths: {data: mine}\n")
    explained = launch("cola", str(tmp_path), "--print_config").stdout
    assert "data: ''\n" in explained
    done = launch(
        str(write(tmp_path / "explained.yaml", explained)), str(tmp_path), "--print_config", DATA=str(tmp_path)
    )
    assert f"data: {tmp_path}\n" in done.stdout
    for arguments in ((str(with_data), str(tmp_path)), ("--config", str(with_data)), (f"--config={with_data}",)):
        done = launch(*arguments, "--print_config", DATA=str(tmp_path))
        assert "data: mine\n" in done.stdout, done.stderr
    done = launch("cola", str(tmp_path), f"--config={own}", DATA=str(tmp_path))
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert done.stderr.startswith("error: --config: cola has its own settings; begin your file with `base: ")
    assert "cola.yaml` and `task: cola`, and give the file in place of cola" in done.stderr
    done = launch("race_high", str(tmp_path), "--config", str(own), DATA=str(tmp_path))
    assert "race.yaml` and `task: race_high`, and give the file in place of race_high" in done.stderr
