"""The predicted memory of a fine-tuning is what Paddle allocates for a step."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ernie_gram.model.config import ModelConfig
from reader.system.arrays import offsets_of
from tasks.data.features import Inputs
from tasks.training.memory import finetuning_memory
from tests.support.bfloat16 import skip_where_refused
from tests.support.further_cases import only
from tests.tasks.training.test_job import run_of

LENGTH, SAMPLES = 128, 12
MODEL = ModelConfig(
    vocab_size=200, hidden_size=96, num_attention_heads=6, num_hidden_layers=3, max_position_embeddings=LENGTH
)
NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
CASES: dict[str, tuple[list[str], dict[str, Any]]] = {
    "dropout": ([], {}),
    "no dropout": ([], NO_DROPOUT),
    "pooled": (["--head.sentence_output=pooled"], {"use_pooler": True}),
    "cls": (["--head.sentence_output=cls"], {}),
    "recompute": (["--trainer.recompute=true"], {}),
    "bfloat16": (["--optimizer.precision=bfloat16"], {}),
    "padding": ([], {}),
}


@pytest.mark.parametrize("case", only({"padding", "pooled"}, CASES))
def test_memory_is_what_paddle_allocates(tiny_task: Path, tmp_path: Path, case: str) -> None:
    from ernie_gram.distributed.ranks import World
    from ernie_gram.training.program import build_training
    from tasks.training.network import TaskNetwork
    from tests.support.paddle_program import step_memory
    from tests.support.static_programs import current_place

    skip_where_refused(case)
    more, changes = CASES[case]
    run, encoder = (
        run_of(tiny_task, tmp_path / "run", f"--optimizer.batch_size={SAMPLES}", *more),
        replace(MODEL, **changes),
    )
    # The samples, with longer texts.
    features = run.train.features
    lengths = np.full(len(features.inputs), LENGTH)
    if case == "padding":
        lengths[1::2] = LENGTH // 4
    tokens = np.random.default_rng(0).integers(5, 20, lengths.sum()).astype(np.int32)
    inputs = Inputs(tokens, offsets_of(lengths), lengths.astype(np.int32), features.inputs.pad)
    features = replace(features, inputs=inputs)
    batch = np.arange(SAMPLES)
    network = TaskNetwork(run.kind, encoder, MODEL.vocab_size or 0, False)
    settings, recompute = run.config.optimizer.for_steps(8), run.config.trainer.recompute

    def build() -> Any:
        world = World(0, 1, current_place())
        return build_training(network, settings, world, recompute=recompute)

    allocated = step_memory(build, features.batch(batch))
    memory = finetuning_memory(run.config, encoder, features, [batch], 1, True, run.kind.reads_first_slots)
    # 1 to 2 % without other work; on a loaded machine, memory is freed later.
    assert memory.total == pytest.approx(allocated, rel=0.1)


def test_micro_batches_and_processes_need_less_and_accumulated_gradients_more(tiny_task: Path, tmp_path: Path) -> None:
    runs = [
        run_of(tiny_task, tmp_path / "run", "--optimizer.batch_size=60", *more)
        for more in ([], ["--trainer.micro_batch=8"])
    ]
    whole, divided = (run.memory(1) for run in runs)
    assert divided.parts["activations"] < whole.parts["activations"]
    assert divided.parts["accumulated gradients"] == divided.parameters
    assert whole.parts["accumulated gradients"] == 0
    assert runs[0].memory(2).parts["activations"] < whole.parts["activations"]
    [line] = [line for line in runs[0].describe(2) if line.startswith("memory ")]
    assert line.startswith(f"memory   {runs[0].memory(2).total / 1e6:,.1f} MB per process in the ")
