"""Fine-tuning of each kind, prediction and export under a pretended GPU, see support/pretended_gpu."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import call
from tests.support.further_cases import only
from tests.support.own_tasks import KINDS, own_task
from tests.support.pretended_gpu import on_gpu
from tests.support.static_programs import fresh_scope
from tests.support.tiny_task import finetune
from tests.tasks.test_export import NUMBER, numbers_in


@pytest.mark.parametrize("kind", only(("classification", "multiple_choice", "span", "tagging"), KINDS))
def test_a_task_is_learned_and_exported(kind: str, tiny_task: Path, tmp_path: Path, pretended_gpu: list[str]) -> None:
    from tasks import export, predict

    def run(main: Any, *arguments: Any) -> None:
        pretended_gpu.clear()
        with fresh_scope():
            call(main, *map(str, arguments)).ok()

    task, model, program = own_task(tmp_path / "data", kind), tmp_path / "run", tmp_path / "program"
    settings = [f"--task={task}", f"--paths.data={task.parent}", "--optimizer.epochs=1", "--dropout.hidden=0.1"]
    finetune(tiny_task, model, *settings, "--input.max_query_len=4").ok()
    assert set(on_gpu(pretended_gpu)) == {"peak"}
    run(export.main, model, program, "--to", "inference")
    assert on_gpu(pretended_gpu) == []
    answers = []
    for source, device in ((model, "gpu"), (program, "auto"), (program, "cpu")):
        output = tmp_path / f"{source.name}_{device}.jsonl"
        run(predict.main, source, "--input", task.parent / "own.jsonl", "--output", output, "--device", device)
        if device == "cpu":
            assert pretended_gpu == [*["flush_denormals", "set_device cpu"] * 2, "use_compiled"]
        else:
            assert on_gpu(pretended_gpu) == []
        answers.append(output.read_text())
    assert len(answers[0].splitlines()) == 5
    assert answers[0] == answers[1]
    # On the CPU, other kernels compute the program.
    assert NUMBER.sub("", answers[2]) == NUMBER.sub("", answers[0])
    assert numbers_in(answers[2]) == pytest.approx(numbers_in(answers[0]), rel=1e-5)
