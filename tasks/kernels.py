"""Print the kernels that fine-tuning and prediction of each kind of task run on the GPU, for `ernie-gram gpu-check`:

    ernie-gram kernels float32 bfloat16

The output is a line of JSON: name of a program -> its kernels, each as [name, type of its numbers].
"""

from __future__ import annotations

from reader.commands import run_command

if __name__ == "__main__":
    run_command("tasks.kernels")

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Literal, get_args

from ernie_gram.distributed.world import World, start_world  # before Paddle: it sets the number of threads
from ernie_gram.gpu_checks.lowering import kernels_of
from ernie_gram.model.config import ModelConfig
from ernie_gram.training.config import OptimizerConfig
from ernie_gram.training.program import Program, build_training
from reader.errors import OneLineParser
from tasks.kinds.catalog import KINDS
from tasks.kinds.settings import HeadSettings, KindSettings
from tasks.registry import TASKS
from tasks.training.job import rate_scale
from tasks.training.network import TaskNetwork, build_prediction

Precision = Literal["float32", "bfloat16"]
VOCABULARY = 1000
MODEL = ModelConfig(
    hidden_size=32, out_emb_size=16, num_hidden_layers=1, num_attention_heads=4, use_sentence_embedding=True
)


def task_programs(world: World, precision: Precision) -> Iterator[tuple[str, Program]]:
    """Yield the programs of all kinds of tasks in a precision, with their names."""
    for name, kind_type in KINDS.items():
        # The first task of the kind whose labels are known.
        task = next(task for task in TASKS.values() if task.kind == name and not kind_type.needs_labels(task))
        kind = kind_type(task, KindSettings(head=HeadSettings(option_loss_weight=0.5)))
        config = replace(MODEL, use_pooler=kind.has_pooler)
        network = TaskNetwork(kind, config, VOCABULARY, has_lm_transform=True)
        optimizer = OptimizerConfig(precision=precision)
        yield (
            f"{name}, fine-tuning",
            build_training(
                network,
                optimizer,
                lambda step: 1e-4,
                world,
                partial(rate_scale, num_layers=config.num_hidden_layers, decay=0.9),
            ),
        )
        yield f"{name}, prediction", build_prediction(network, precision)


def main() -> None:
    """Run the command line."""
    parser = OneLineParser(description=__doc__)
    parser.add_argument("precision", nargs="+", choices=get_args(Precision), help="precisions of matrix products")
    arguments = parser.parse_args()
    world = start_world("gpu")
    found = {
        f"{name}, {precision}": sorted(kernels_of(program.main, world.place))
        for precision in arguments.precision
        for name, program in task_programs(world, precision)
    }
    print(json.dumps(found))
