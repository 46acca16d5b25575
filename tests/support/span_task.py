"""A small span task of one's own whose questions may have no answer."""

from __future__ import annotations

from pathlib import Path

from tests.support.task_files import squad, write_json


def span_task(folder: Path) -> Path:
    """Write a task of one's own with questions that have no answer; return its YAML file."""
    for name, count in (("train", 12), ("dev", 5), ("test", 7)):
        answers = {f"{name}{i}": ["c d"] if i % 3 != 1 else [] for i in range(count)}
        write_json(folder / f"{name}.json", squad("a b c d e f", answers, question="h g"))
    files = "files: {train: train.json, dev: dev.json, test: test.json}"
    text = f"kind: span\nlanguage: en\nlayout: squad\n{files}\nunanswerable: true\nmetric: squad_v2\n"
    (folder / "spans.yaml").write_text(text)
    return folder / "spans.yaml"
