"""Print the kernels that fine-tuning and prediction of each kind of task run on the GPU, for `ernie-gram gpu-check`:

    ernie-gram kernels float32 bfloat16

The output is a line of JSON: name of a program -> its kernels, each as [name, dtype].
"""

from __future__ import annotations

from reader.commands import run_command

if __name__ == "__main__":
    run_command("tasks.kernels")

import json
from collections.abc import Iterator
from functools import partial

from ernie_gram.distributed.world import World, start_world  # before Paddle: it sets the number of threads

import paddle  # isort: skip

from ernie_gram.gpu_checks.kernels import kernels_of
from ernie_gram.gpu_checks.programs import LAYERS, PRECISIONS, SIZES, Case, training_cases
from ernie_gram.model.config import ModelConfig
from ernie_gram.training.config import OptimizerConfig
from reader.errors import OneLineParser
from tasks.kinds.catalog import kind_of
from tasks.kinds.settings import HeadSettings, KindSettings
from tasks.registry import TASKS
from tasks.training.job import rate_scale
from tasks.training.network import TaskNetwork, build_prediction

# A task of each kind, with the settings of its head. Settings that lead to other operations have a row of their own.
HEADS = {
    "classification, pooled": ("mnli", HeadSettings("pooled")),
    "classification, cls": ("mnli", HeadSettings("cls")),
    "classification, mean": ("mnli", HeadSettings("mean")),
    "regression": ("stsb", HeadSettings()),
    "multiple choice": ("race", HeadSettings(option_loss_weight=0.5)),
    "span": ("squad1", HeadSettings(lm_transform=True)),
    "tagging": ("conll2003", HeadSettings(lm_transform=False)),
}
MODEL = ModelConfig(
    hidden_size=48, num_hidden_layers=LAYERS, num_attention_heads=4, out_emb_size=16, use_sentence_embedding=True
)


def task_cases(head: str, precision: str, place: paddle.base.core.Place) -> Iterator[Case]:
    """Yield the programs that fine-tune on a task with one of HEADS, and predict."""
    task, settings = HEADS[head]
    network = TaskNetwork(kind_of(TASKS[task], KindSettings(head=settings)), MODEL, SIZES.tokens, True)
    scale = partial(rate_scale, num_layers=LAYERS, decay=0.9)
    optimizer = OptimizerConfig(precision=precision)  # type: ignore[arg-type]
    yield from training_cases(head, network, optimizer, "plain", World(0, 1, place), rate_scale=scale)
    yield Case(f"{head}, {precision}: scores", build_prediction(network, precision).main)


def main() -> None:
    """Run the command line."""
    parser = OneLineParser(description=__doc__)
    parser.add_argument("precision", nargs="+", choices=PRECISIONS, help="precisions of matrix products")
    arguments = parser.parse_args()
    place = start_world("gpu").place
    cases = [case for precision in arguments.precision for head in HEADS for case in task_cases(head, precision, place)]
    print(json.dumps({case.name: sorted(kernels_of(case.program, place)) for case in cases if case.is_step}))
