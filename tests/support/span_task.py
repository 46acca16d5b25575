"""A small span task of one's own whose questions may have no answer."""

from __future__ import annotations

import json
from pathlib import Path


def span_task(folder: Path) -> Path:
    """Write a task of one's own with questions that have no answer; return its YAML file."""
    for name, count in (("train", 12), ("dev", 5), ("test", 7)):
        questions = [
            {
                "id": f"{name}{i}",
                "question": "h g",
                "answers": [{"text": "c d", "answer_start": 4}] if i % 3 != 1 else [],
                "is_impossible": i % 3 == 1,
            }
            for i in range(count)
        ]
        content = {"data": [{"paragraphs": [{"context": "a b c d e f", "qas": questions}]}]}
        (folder / f"{name}.json").write_text(json.dumps(content))
    files = "files: {train: train.json, dev: dev.json, test: test.json}"
    text = f"kind: span\nlanguage: en\nlayout: squad\n{files}\nunanswerable: true\nmetric: squad_v2\n"
    (folder / "spans.yaml").write_text(text)
    return folder / "spans.yaml"
