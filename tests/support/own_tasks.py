"""Small tasks of one's own of every kind, as JSON lines, in the words of the tiny task's vocabulary.

MOODS is a task of the kind that no task of the registry has.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tasks.registry import TASKS
from tasks.registry.task_file import read_task_file

MOODS_FILE = Path(__file__).with_name("moods.yaml")
MOODS = read_task_file(MOODS_FILE)
# A task of each kind is in it.
KNOWN = {**TASKS, MOODS.name: MOODS}
# For each kind: its metric, and the first of its rows.
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "classification": ("accuracy", {"text_a": "a b c", "text_b": "d e", "label": "1"}),
    "multi_label": ("multi_label_f1", {"text_a": "a b c", "text_b": "d e", "labels": ["1", "2"]}),
    "regression": ("correlation", {"text_a": "a b c", "text_b": "d e", "score": 0.5}),
    "multiple_choice": ("accuracy", {"context": "a b", "question": "c", "options": ["d", "e f", "g"], "answer": "A"}),
    "span": ("squad_v1", {"context": "a b c d", "question": "e", "answers": ["b"]}),
    "tagging": ("conlleval", {"tokens": ["a", "b", "c"], "tags": ["O", "B-X", "O"]}),
}
# What takes turns with the first row's value, so that there is something to learn.
OTHER = {"label": "2", "labels": [], "score": 3.0, "answer": "B", "answers": ["c"], "tags": ["B-X", "I-X", "O"]}
GOLD = tuple(OTHER)


def own_task(folder: Path, kind: str) -> Path:
    """Write train.jsonl and dev.jsonl with gold values, own.jsonl without; return the YAML file of the task."""
    metric, first = KINDS[kind]
    rows = [first, {key: OTHER.get(key, value) for key, value in first.items()}]
    unlabelled = {key: value for key, value in first.items() if key not in GOLD}
    folder.mkdir()
    for name, written in (("train", rows * 8), ("dev", rows * 3), ("own", [unlabelled] * 5)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in written))
    task = {"kind": kind, "language": "en", "layout": "json_lines", "metric": metric}
    columns = {"columns": {key: key for key in first}, "files": {name: f"{name}.jsonl" for name in ("train", "dev")}}
    path = folder / "task.yaml"
    path.write_text(json.dumps(task | columns))
    return path
