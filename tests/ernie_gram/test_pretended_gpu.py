"""Pre-training and what is done with its models under a pretended GPU: each command ends well and takes its branches.

What is computed there is computed on the CPU, in float32. See support/pretended_gpu.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ernie_gram import fill_mask, infer
from tasks.convert import main as convert
from tests.support.commands import Done
from tests.support.pretended_gpu import on_gpu
from tests.support.runs import evaluations, pretrain, train_losses
from tests.support.static_programs import call_in_scope


def test_pre_training_recomputes_resumes_and_accumulates(built: Path, tmp_path: Path, pretended_gpu: list[str]) -> None:
    def train(output: str, steps: int, *more: str) -> Done:
        pretended_gpu.clear()
        settings = [f"--trainer.max_steps={steps}", "--optimizer.decay_steps=8", "--trainer.eval_every=2"]
        done = pretrain(built, tmp_path / output, *settings, *more).ok()
        # No operation of the program was rewritten; the memory in the log is the GPU's.
        assert set(on_gpu(pretended_gpu)) == {"peak"}
        return done

    train("undisturbed", 4)
    train("run", 2, "--trainer.recompute=true", "--trainer.device=gpu")
    assert "resumes from" in train("run", 4).stdout
    assert train_losses(tmp_path / "run") == train_losses(tmp_path / "undisturbed")
    assert "resumes from" in train("run", 6, "--trainer.micro_batch=3").stdout
    assert [step for step, *_ in train_losses(tmp_path / "run")] == [1, 2, 3, 4, 5, 6]
    assert [evaluation["step"] for evaluation in evaluations(tmp_path / "run")] == [0, 2, 4, 6]


def test_a_job_on_the_cpu_of_a_machine_with_a_gpu_is_prepared_for_a_cpu(
    built: Path, tmp_path: Path, pretended_gpu: list[str]
) -> None:
    pretrain(built, tmp_path / "run", "--trainer.max_steps=3", "--trainer.device=cpu").ok()
    # The first two are those of the test itself.
    assert pretended_gpu == ["flush_denormals", "set_device cpu"] * 2 + ["use_compiled"] * 2


def test_a_run_is_exported_and_answers(finished: Path, tmp_path: Path, pretended_gpu: list[str]) -> None:
    def run(main: Any, *arguments: Any) -> list[str]:
        pretended_gpu.clear()
        return call_in_scope(main, *arguments).ok().stdout.splitlines()

    text = "a [MASK] statement"
    (tmp_path / "text").write_text(text)
    filled = run(fill_mask.main, finished, text, "--json")
    assert on_gpu(pretended_gpu) == []
    for outputs in ("encoder", "fill_mask"):
        run(convert, finished, tmp_path / outputs, "--to", "inference", "--outputs", outputs)
        assert on_gpu(pretended_gpu) == []
        if outputs == "encoder":
            (answer,) = run(infer.main, tmp_path / outputs, "--input", tmp_path / "text")
        else:
            (answer,) = run(fill_mask.main, tmp_path / outputs, text, "--json")
        assert pretended_gpu[-1] == "set_device gpu:0"
        assert set(json.loads(answer)) == {"text", "vector" if outputs == "encoder" else "masks"}
    units = [[unit["unit"] for unit in json.loads(line)["masks"][0]] for line in (answer, *filled)]
    assert units[0] == units[1]
