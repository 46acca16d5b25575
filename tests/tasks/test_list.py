"""The list of tasks, and the launcher, which shows it and takes files of settings."""

from __future__ import annotations

import re
from pathlib import Path

from tasks.list import main
from tasks.registry import TASKS
from tests.support.commands import ROOT, Done, assert_one_line_error, call, shell
from tests.support.task_files import write


def launch(*arguments: str, **environment: str) -> Done:
    """Run the launcher from the root of the file system."""
    return shell(str(ROOT / "run_finetune.sh"), *arguments, cwd="/", **environment)


def rows_of(text: str) -> dict[str, str]:
    """Return the lines of each task, joined, by its name."""
    assert max(map(len, text.splitlines())) <= 120
    rows = (" ".join(row.split()) for row in re.split(r"\n(?! )", text.rstrip()))
    return {row.split()[0]: row for row in rows}


def test_every_task_has_a_line_with_its_metric_and_files() -> None:
    printed = call(main).stdout
    rows = rows_of(printed)
    assert [*rows] == ["task", *TASKS]
    lines = [line for line in printed.splitlines() if not line.startswith(" ")]
    kinds = ["kind", *(task.kind for task in TASKS.values())]
    assert len({line.index(f" {kind} ") for line, kind in zip(lines, kinds, strict=True)}) == 1
    for name, task in TASKS.items():
        assert task.metric in rows[name].split()
        sources = [source for split in task.splits.values() for source in split.sources]
        assert all(" + ".join(source.files) in rows[name] for source in sources)


def test_the_launcher_shows_the_list_and_takes_a_file_of_settings_in_place_of_a_task(tmp_path: Path) -> None:
    assert launch("--list").stdout == call(main).stdout
    assert_one_line_error(launch("--list", "--data", "x"), "unrecognized arguments: --data")

    def shown(*arguments: str) -> set[str]:
        done = launch(*arguments, "--print_config", DATA=str(tmp_path)).ok()
        return {*map(str.strip, done.stdout.splitlines())}

    # The default of epochs is 3.
    assert {"task: cola", "epochs: 10"} <= shown("cola", str(tmp_path))
    own = f"base: {ROOT / 'conf' / 'tasks' / 'cola.yaml'}\noptimizer: {{epochs: 7}}\n"
    with_data = str(write(tmp_path / "data.yaml", f"{own}paths: {{data: mine}}\n"))
    for arguments in ((with_data, str(tmp_path)), ("--config", with_data), (f"--config={with_data}",)):
        assert {"task: cola", "epochs: 7", "data: mine"} <= shown(*arguments)
    done = launch("race_high", str(tmp_path), "--config", with_data, DATA=str(tmp_path))
    assert_one_line_error(done, f"--config: given twice; begin {with_data} with `base: FILE`")
