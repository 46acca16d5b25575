"""Fine-tuned models for Python code: the answers of the command, in the caller's dynamic mode."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reader.errors import InputError
from tasks.api import FineTuned, Row
from tasks.predict import main
from tasks.registry import TASKS
from tests.support.commands import call
from tests.support.finetuned_runs import made_run
from tests.support.static_programs import fresh_scope
from tests.support.task_files import write_json, write_lines

import paddle  # isort: skip

TEXTS = ["the cat sat", "a dog ran home now", "it ran"]
CONTEXT = "The cat sat on a mat; the dog ran home, then it sat now. The cats ran on the mat."
ROWS: dict[str, tuple[list[Row], list[dict[str, Any]]]] = {
    "rte": (
        [(text, "it sat") for text in TEXTS],
        [{"text_a": text, "text_b": "it sat"} for text in TEXTS],
    ),
    "stsb": (
        [("it", "ran"), {"text_a": "the", "text_b": "cat"}],
        [{"text_a": "it", "text_b": "ran"}, {"text_a": "the", "text_b": "cat"}],
    ),
    "squad2": ([(CONTEXT, text) for text in TEXTS], [{"context": CONTEXT, "question": text} for text in TEXTS]),
    "conll2003": (["it   (ran).", ["the", "cat", "."]], [{"text": "it   (ran)."}, {"tokens": ["the", "cat", "."]}]),
    "race": (
        [{"context": CONTEXT, "question": "it _ now", "options": TEXTS}],
        [{"context": CONTEXT, "question": "it _ now", "options": TEXTS}],
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_rows_are_answered_as_by_the_command_and_the_caller_stays_in_dynamic_mode(name: str, tmp_path: Path) -> None:
    run = made_run(tmp_path / "run", TASKS[name])
    write_json(run / "result.json", {"null_threshold": 0.1})
    rows, lines = ROWS[name]
    path, output = write_lines(tmp_path / "rows.jsonl", *lines), tmp_path / "answers.jsonl"
    with fresh_scope():
        done = call(main, str(run), "--input", str(path), "--layout", "json", "--output", str(output))
    assert done.returncode == 0, done.stderr
    paddle.disable_static()
    x = paddle.to_tensor([3.0], stop_gradient=False)
    model = FineTuned.load(run)
    y = x * x
    expected = [json.loads(line) for line in output.read_text("utf-8").splitlines()]
    assert model.predict(rows) == expected
    assert model.predict(rows[:1]) == model.predict(rows[:1], batch_size=1)
    array = np.empty(len(rows), object)
    for i, row in enumerate(rows):
        array[i] = row
    assert model.predict(array) == expected  # type: ignore[arg-type]
    assert paddle.in_dynamic_mode()
    y.backward()
    assert x.grad is not None
    assert x.grad.item() == 6.0


def test_errors_name_the_row_and_leave_the_caller_in_dynamic_mode(tmp_path: Path) -> None:
    run = made_run(tmp_path / "run", TASKS["rte"])
    paddle.disable_static()
    model = FineTuned.load(run)
    assert model.predict([]) == []
    bad: list[tuple[Row, str]] = [
        ({"text_a": b"bytes"}, r"^rows:2: .*bytes"),  # type: ignore[dict-item]
        ("one text", "rows:2: 1 values, but the task has text_a, text_b"),
        (None, "rows:2: expected a text, several in a tuple or a list, or a dict, not None"),
        (b"x", "rows:2: expected a text, several in a tuple or a list, or a dict, not b'x'"),
        ({"text_a": "it"}, r"^rows:2: no key 'text_b' in the object; did you mean text_a\?$"),
        (("it", 3), r"^rows:2: .*text_b"),  # type: ignore[arg-type]
    ]
    for row, message in bad:
        with pytest.raises(InputError, match=message):
            model.predict([("it", "ran"), row])
        assert paddle.in_dynamic_mode()
    for rows in ("a text", "", {"text_a": "it", "text_b": "ran"}, 3):
        with pytest.raises(InputError, match=r"^rows: give a list of rows, not "):
            model.predict(rows)  # type: ignore[arg-type]
    for size in (0, -1):
        with pytest.raises(InputError, match=f"^batch_size: {size} is not positive$"):
            model.predict([("it", "ran")], batch_size=size)
    (run / "best" / "model.safetensors").write_bytes(b"")
    with pytest.raises(InputError):
        FineTuned.load(run)
    with pytest.raises(InputError, match="nowhere"):
        FineTuned.load(tmp_path / "nowhere")


def test_a_run_without_a_threshold_is_loaded_with_a_warning(tmp_path: Path) -> None:
    run = made_run(tmp_path / "run", TASKS["squad2"])
    with pytest.warns(UserWarning, match=f"^{run}: no result.json with a threshold"):
        FineTuned.load(run)
