"""docs/tasks.md has every key, layout, option, metric and column that the code knows, and its examples are read."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from dataclasses import MISSING, fields
from pathlib import Path

import pytest

from reader.errors import InputError
from tasks.files.official import load_split
from tasks.kinds.catalog import KINDS
from tasks.kinds.settings import InputSettings
from tasks.kinds.task import LANGUAGES
from tasks.layouts.rows import CLEANERS
from tasks.metrics.catalog import METRICS
from tasks.registry.task_file import (
    FIELDS,
    LAYOUTS,
    TASK_KEYS,
    read_task_file,
)
from tasks.training.config import FinetuneConfig, FinetunePaths
from tasks.training.prepare import prepare
from tests.support.commands import ROOT
from tests.support.task_files import write
from tests.test_documentation import rows_of

PAGE = (ROOT / "docs" / "tasks.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"(?:`([\w./-]+)`:\n\n)?```(\w*)\n(.*?)```\n", re.DOTALL)


def examples() -> dict[str, tuple[str, dict[str, str]]]:
    """Return the YAML text of each task of the page, and the texts of its files, by the name of its YAML file.

    The files of a task are those that follow it, up to the next task.
    """
    found: dict[str, tuple[str, dict[str, str]]] = {}
    for name, language, text in BLOCK.findall(PAGE):
        if language == "yaml":
            yaml = re.match(r"# ([\w.]+)\n", text)
            assert yaml is not None, text
            assert yaml[1] not in found
            found[yaml[1]] = (text, files := {})
        else:
            files[name] = text
    return found


EXAMPLES = examples()


def names_in(cell: str) -> list[str]:
    """Return the names in a cell of a table: words between backticks, or else between commas, without `none`."""
    return re.findall(r"`([\w.-]+)`", cell) or [name for name in cell.split(", ") if name != "none"]


def table(first: str) -> dict[str, list[str]]:
    """Return the other cells of each row of the table whose head begins with a cell, by the names in its first one."""
    return {name: cells[1:] for cells in rows_of(PAGE, first) for name in names_in(cells[0])}


def test_all_keys_columns_metrics_layouts_and_options_are_there_by_kind() -> None:
    keys = table("Key")
    assert sorted(keys) == sorted({*TASK_KEYS, *FIELDS})
    for key, (kinds, _, _) in keys.items():
        of_kinds = [name for name, kind in KINDS.items() if key in kind.task_fields]
        assert kinds == ", ".join(of_kinds or ["all"]), key
    assert names_in(keys["kind"][2]) == [*KINDS]
    assert names_in(keys["language"][2]) == [*LANGUAGES]
    assert {kind: [names_in(cell) for cell in cells] for kind, cells in table("Kind").items()} == {
        name: [[role.name for role in kind.roles if role.needed is needed] for needed in (True, False)]
        for name, kind in KINDS.items()
    }
    assert {*table("Value")} == {role.name for kind in KINDS.values() for role in kind.roles}
    metrics = table("Metric")
    assert sorted(metrics) == sorted(METRICS)
    for name, (kinds, main, unit, _) in metrics.items():
        assert names_in(kinds) == [kind.name for kind in KINDS.values() if name in kind.metrics], name
        assert (names_in(main), unit) == ([METRICS[name].main], METRICS[name].unit), name
    layouts = table("Layout")
    found = {name: (names_in(kinds), names_in(options)) for name, (kinds, options, _) in layouts.items()}
    assert {name for kind in KINDS.values() for name in kind.layouts} == {*LAYOUTS}
    for name, layout in LAYOUTS.items():
        kinds = [kind.name for kind in KINDS.values() if name in kind.layouts]
        assert layout.__name__.lower().startswith(name.replace("_", ""))
        assert found.pop(name) == (["all"] if kinds == [*KINDS] else kinds, [field.name for field in fields(layout)])
    assert not found
    options = table("Option")
    assert sorted(options) == sorted({field.name for layout in LAYOUTS.values() for field in fields(layout)})
    for layout in LAYOUTS.values():
        for field in fields(layout):
            shown = options[field.name][0].strip("`")
            is_needed = field.default is field.default_factory is MISSING
            default = "needed" if is_needed else "none" if field.default in (None, MISSING) else str(field.default)
            assert shown == default.lower(), field.name
    assert {*CLEANERS} <= {*names_in(options["clean"][1])} <= {*CLEANERS, "text_a", "text_b"}


def test_a_key_is_needed_if_the_page_says_so(tmp_path: Path) -> None:
    text, _ = EXAMPLES["similar.yaml"]
    for key, (_, default, _) in table("Key").items():
        short = re.sub(rf"^{key}: .*\n", "", text, flags=re.MULTILINE)
        if default == "needed":
            with pytest.raises(InputError, match=rf"{key}: "):
                read_task_file(write(tmp_path / "short.yaml", short))
        elif key != "labels":
            read_task_file(write(tmp_path / "short.yaml", short))


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_read_and_encoded_for_a_fine_tuning(name: str, tiny_task: Path, tmp_path: Path) -> None:
    text, files = EXAMPLES[name]
    task = read_task_file(write(tmp_path / name, text))
    for file, content in files.items():
        write(tmp_path / file, content)
    train = task.splits["train"].sources[0].files
    for split in task.evaluation_splits:
        for copy, source in zip(task.splits[split].sources[0].files, train, strict=False):
            copy_of: Callable[..., object] = shutil.copytree if (tmp_path / source).is_dir() else shutil.copyfile
            (tmp_path / copy).parent.mkdir(exist_ok=True)
            copy_of(tmp_path / source, tmp_path / copy)
    paths = FinetunePaths(str(tiny_task / "model"), str(tmp_path), str(tmp_path / "run"))
    inputs = InputSettings(max_seq_len=40, max_query_len=16)
    run = prepare(FinetuneConfig(task=str(tmp_path / name), input=inputs, paths=paths))
    assert [split.name for split in run.dev] == ["dev"]
    for data in (run.train, *run.dev):
        omitted = sum(f'"{label}"' in content for label in task.omitted_labels for content in files.values())
        assert len(data.report.omitted) == omitted
    for split in task.submission_splits:
        assert load_split(run.task, tmp_path, split).examples
