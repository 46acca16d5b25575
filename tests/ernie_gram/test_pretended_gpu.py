"""Pre-training and what is done with its models under a pretended GPU: each command ends well and takes its branches.

What is computed there is computed on the CPU, in float32. See support/pretended_gpu.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ernie_gram import fill_mask, infer
from tasks.convert import main as convert
from tests.support.pretended_gpu import on_gpu
from tests.support.runs import pretrain
from tests.support.static_programs import call_in_scope


def test_a_job_on_the_cpu_of_a_machine_with_a_gpu_is_prepared_for_a_cpu(
    built: Path, tmp_path: Path, pretended_gpu: list[str]
) -> None:
    pretrain(built, tmp_path / "run", "--trainer.max_steps=3", "--trainer.device=cpu").ok()
    # The first two are those of the test itself.
    assert pretended_gpu[:4] == ["flush_denormals", "set_device cpu"] * 2
    # Of the generator and the main model; training and evaluation.
    assert set(pretended_gpu[4:]) == {"encoder_layers"}


def test_a_run_is_exported_and_answers(finished: Path, tmp_path: Path, pretended_gpu: list[str]) -> None:
    def run(main: Any, *arguments: Any) -> list[str]:
        pretended_gpu.clear()
        return call_in_scope(main, *arguments).ok().stdout.splitlines()

    text = "a [MASK] statement"
    (tmp_path / "text").write_text(text)
    for outputs in ("encoder", "fill_mask"):
        run(convert, finished, tmp_path / outputs, "--to", "inference", "--outputs", outputs)
        assert on_gpu(pretended_gpu) == []
        if outputs == "encoder":
            (answer,) = run(infer.main, finished, "--input", tmp_path / "text")
        else:
            (answer,) = run(fill_mask.main, finished, text, "--json")
        assert on_gpu(pretended_gpu) == []
        assert pretended_gpu[-1] == "set_device gpu:0"
        assert set(json.loads(answer)) == {"text", "vector" if outputs == "encoder" else "masks"}
