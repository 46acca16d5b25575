"""Fine-tuned models: task.json and task.yaml of a run from a stranger."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reader.errors import InputError
from tasks.kinds.settings import KindSettings
from tasks.registry import TASKS
from tasks.training.finetuned import TaskDescription, read_description, write_description
from tests.support.tiny_task import TASK

CONTENT = {"task": "reviews", "title": "Reviews", "labels": ["0", "1"], "settings": {}, "segmenter": "char"}


def run_with(folder: Path, **changes: Any) -> Path:
    """Write the description of a fine-tuned model of a custom task."""
    (folder / "task.yaml").write_text(TASK)
    (folder / "task.json").write_text(json.dumps({**CONTENT, "precision": "float32", **changes}))
    return folder


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"task": ".."}, "name: '..'"),
        ({"task": "../../x"}, "name: "),
        ({"task": 5}, "damaged: "),
        ({"labels": ["0", "0"]}, "labels: "),
        ({"settings": {"input": {"max_seq_len": "[" * 300}}}, "input.max_seq_len: "),
    ],
)
def test_what_strangers_write_is_refused_with_file_and_key(tmp_path: Path, changes: dict[str, Any], key: str) -> None:
    with pytest.raises(InputError) as caught:
        read_description(run_with(tmp_path, **changes))
    assert str(caught.value).startswith(f"{tmp_path / 'task.json'}: {key}")


def test_settings_are_kept_or_defaults_and_an_earlier_task_does_not_stay(tmp_path: Path) -> None:
    for stored, threshold in (({}, None), ({"span": {"null_threshold": 0.25}}, 0.25)):
        assert read_description(run_with(tmp_path, settings=stored)).settings.span.null_threshold == threshold
    write_description(run_with(tmp_path), TaskDescription(TASKS["sst2"], KindSettings(), "char", "float32"), None)
    assert read_description(tmp_path).task == TASKS["sst2"]
