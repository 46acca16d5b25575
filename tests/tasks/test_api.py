"""Fine-tuned models for Python code: the answers of the command, in the caller's dynamic mode."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import paddle
import pytest

from ernie_gram.distributed.processor import no_bfloat16
from ernie_gram.formats.registry import read_model
from reader.errors import InputError
from tasks.api import FineTuned, Row
from tasks.predict import main
from tasks.registry import TASKS
from tests.support.commands import python
from tests.support.data_frames import FRAMES
from tests.support.finetuned_runs import ROWS, made_run
from tests.support.further_cases import only
from tests.support.own_tasks import KNOWN
from tests.support.static_programs import call_in_scope, fresh_scope
from tests.support.task_files import write_lines
from tests.support.tiny_task import SETTINGS

TEXTS = ["the cat sat", "a dog ran home now", "it ran"]


def short(row: dict[str, Any]) -> Row:
    """Return a text, a list of tokens or a tuple of texts and of an array of options in place of a row by names."""
    values = tuple(np.array(each) if key == "options" else each for key, each in row.items())
    return values[0] if len(values) == 1 else values


@pytest.mark.parametrize("name", only(("rte", "race", "squad2", "conll2003"), ROWS))
def test_rows_are_answered_as_by_the_command_and_the_caller_stays_in_dynamic_mode(name: str, tmp_path: Path) -> None:
    run = made_run(tmp_path / "run", KNOWN[name])
    lines = ROWS[name]
    # Both forms in one list.
    rows: list[Row] = [*map(short, lines[:-1]), lines[-1]]
    path, output = write_lines(tmp_path / "rows.jsonl", *lines), tmp_path / "answers.jsonl"
    call_in_scope(main, run, "--input", path, "--layout", "json", "--output", output).ok()
    paddle.disable_static()
    x = paddle.to_tensor([3.0], stop_gradient=False)
    model = FineTuned.load(run)
    assert str(model.source) in repr(model)
    assert KNOWN[name].title in repr(model)
    assert len(repr(model)) < 80 + len(str(model.source))
    assert model.tokenizer.decode(model.tokenizer.encode("the cat").ids) == "the cat"
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
    assert x.grad.item() == 6.0


NEW_PROCESS = """
import json, sys
import paddle
from tasks import FineTuned

if sys.argv[2] == "static":
    paddle.enable_static()
answers = FineTuned.load(sys.argv[1]).predict(json.loads(sys.argv[3]))
from ernie_gram.kernels import custom_operations

used = custom_operations._definition.cache_info().currsize
print(json.dumps([answers, used, paddle.in_dynamic_mode()]))
"""


@pytest.mark.parametrize("mode", only(["dynamic"], ["dynamic", "static"]))
def test_a_new_process_with_several_threads_uses_the_kernels_of_the_commands(mode: str, tmp_path: Path) -> None:
    run = made_run(tmp_path / "run", TASKS["rte"])
    rows = ROWS["rte"]
    done = python("-c", NEW_PROCESS, str(run), mode, json.dumps(rows), OMP_NUM_THREADS="2", timeout=100).ok()
    answers, operations, is_dynamic = json.loads(done.stdout)
    assert operations
    assert is_dynamic == (mode == "dynamic")
    with fresh_scope():
        expected = FineTuned.load(run).predict(rows)
    assert answers == expected


def test_the_precision_can_be_chosen(tmp_path: Path) -> None:
    # Small products are not rounded.
    run = made_run(tmp_path / "run", TASKS["rte"], hidden_size=128, intermediate_size=256)
    rows = [*map(short, ROWS["rte"])]
    in_float32 = FineTuned.load(run, precision="float32").predict(rows)
    assert in_float32 == FineTuned.load(run).predict(rows)
    with pytest.raises(InputError, match=r"^precision: 'half': give float32 or bfloat16$"):
        FineTuned.load(run, precision="half")
    rounded = FineTuned.load(run, precision="bfloat16")
    if no_bfloat16():
        with pytest.raises(InputError, match=r"; use float32$"):
            rounded.predict(rows)
    else:
        assert rounded.predict(rows) != in_float32


def test_ids_are_all_numbers_or_all_texts(tmp_path: Path) -> None:
    model = FineTuned.load(made_run(tmp_path / "run", TASKS["sst2"]))
    for given, expected in ((["7", 8], [7, 8]), (["07", "8"], ["07", "8"]), (["a", 8], ["a", "8"])):
        answers = model.predict([{"text_a": "it", "id": each} for each in given])
        assert [answer["id"] for answer in answers] == expected


def test_errors_name_the_row_and_leave_the_caller_in_dynamic_mode(tmp_path: Path) -> None:
    run = made_run(tmp_path / "run", TASKS["rte"])
    paddle.disable_static()
    model = FineTuned.load(run)
    assert model.predict([]) == []
    bad: list[Any] = [{"text_a": b"x"}, "one text", None, b"x", {"text_a": "it"}, ("it", 3)]
    for row in bad:
        with pytest.raises(InputError, match=r"^rows\[1\]: "):
            model.predict([("it", "ran"), row])
        assert paddle.in_dynamic_mode()
    twice = {"text_a": "it", "text_b": "ran", "id": 1}
    with pytest.raises(InputError, match=r"^rows\[1\]: the id '1' "):
        model.predict([twice, twice])
    for rows in ("a text", "", {"text_a": "it", "text_b": "ran"}, 3, b"it", Path("it")):
        with pytest.raises(InputError, match=r"^rows: give a list"):
            model.predict(rows)  # type: ignore[arg-type]
    for size in (0, -1, 2.5):
        with pytest.raises(InputError, match=f"^batch_size: {size}: "):
            model.predict([("it", "ran")], batch_size=size)
    (run / "best" / "model.safetensors").write_bytes(b"")
    for damaged in (run, tmp_path / "nowhere"):
        with pytest.raises(InputError, match=str(damaged)):
            FineTuned.load(damaged)


@pytest.mark.parametrize("frame", FRAMES)
def test_a_table_is_read_by_its_columns(frame: Any, tmp_path: Path) -> None:
    pairs = FineTuned.load(made_run(tmp_path / "pairs", TASKS["rte"]))
    rows = [{"id": i, "text_a": text, "text_b": "it sat"} for i, text in enumerate(TEXTS, 4)]
    columns = {"label": [2.5, None, "x"]} | {key: [row[key] for row in rows] for key in ("text_b", "text_a", "id")}
    expected = pairs.predict(rows)
    assert pairs.predict(frame(columns)) == expected
    # As in the task's own files.
    own = {"sentence1": columns["text_a"], "sentence2": columns["text_b"], "id": columns["id"]}
    assert pairs.predict(frame(own)) == expected
    assert pairs.predict(frame({key: [] for key in own})) == []
    with pytest.raises(InputError, match=r"^rows: .* text_a, stars; .* text_b: .*rename"):
        pairs.predict(frame({"text_a": TEXTS, "stars": [1, 2, 3]}))
    with pytest.raises(InputError, match=r"^rows\[1\]: text_b is "):
        pairs.predict(frame({"text_a": TEXTS, "text_b": ["it", 1.5, "sat"]}))
    with pytest.raises(InputError, match=r"^rows\[1\]: "):
        pairs.predict([("it", "ran"), frame({"text_a": ["it"], "text_b": ["ran"]})])
    tags = FineTuned.load(made_run(tmp_path / "tags", TASKS["conll2003"]))
    tokens = [["the", "cat"], ["it"]]
    expected = tags.predict(tokens)
    assert tags.predict(frame({"tokens": [np.array(each) for each in tokens]})) == expected
    assert tags.predict(frame({"text": ["the cat", "it"], "n": [1, 2]})) == tags.predict(["the cat", "it"])


def test_training_is_that_of_the_command(
    tiny_task: Path, finetuned: Path, tmp_path: Path, dynamic_mode: None, capsys: pytest.CaptureFixture[str]
) -> None:
    paddle.seed(5)
    state = paddle.get_rng_state()[0].current_seed(), paddle.rand([3]).numpy().tolist()
    paddle.seed(5)
    data, model = tiny_task / "data", tiny_task / "model"
    settings: Any = dict(option[2:].split("=") for option in SETTINGS)
    trained = FineTuned.train(data / "task.yaml", model, data, tmp_path / "run", **settings)
    assert trained.source == tmp_path / "run" / "best"
    assert "final step " in capsys.readouterr().out
    found, expected = (json.loads((run / "result.json").read_text()) for run in (tmp_path / "run", finetuned))
    for key in ("scores", "model", "identity"):
        assert found[key] == expected[key]
    for name, values in read_model(finetuned).parameters.items():
        np.testing.assert_array_equal(read_model(tmp_path / "run").parameters[name], values)
    assert trained.predict(["a b c"]) == FineTuned.load(finetuned).predict(["a b c"])
    assert paddle.in_dynamic_mode()
    assert state == (paddle.get_rng_state()[0].current_seed(), paddle.rand([3]).numpy().tolist())


def test_errors_of_training_are_those_of_the_command(tiny_task: Path, tmp_path: Path) -> None:
    data, output = tiny_task / "data", tmp_path / "run"
    for more, message in (
        ({"optimizer": {"epoch": 2}}, r"^unknown key optimizer\.epoch"),
        ({"seed": 3}, r"^input\.max_seq_len: "),
    ):
        arguments: dict[str, Any] = {"task": data / "task.yaml", "model": tiny_task / "model", **more}
        with pytest.raises(InputError, match=message):
            FineTuned.train(data=data, output=output, **arguments)
        assert not output.exists()
