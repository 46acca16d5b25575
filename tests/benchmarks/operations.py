"""Count what a training step starts on a GPU, without one: `python -m tests.benchmarks.operations [--model base]`.

The programs are those of tests.benchmarks.pretrain_step, built under a pretended GPU. What would happen on a GPU is
simulated (see tests/gpu_kernels/placement.py): "start GPU work" are the operations that start a kernel there; "casts"
are those of them that convert to another dtype; "from the GPU" and "to the GPU" are copies of tensors other than feeds.
"""

from __future__ import annotations

import argparse
from collections import Counter
from dataclasses import replace
from typing import Literal

from ernie_gram.distributed.device import current_place
from ernie_gram.distributed.world import World, start_world
from tests.benchmarks.pretrain_step import MODELS, OBJECTIVE_RUNGS, TOKENS, config_of
from tests.gpu_kernels.placement import Placement, simulate
from tests.gpu_kernels.table import read_table
from tests.support.pretended_gpu import enter_kernels, pretend

OUT_EMB_SIZE, DROPOUT = 128, 0.1
COLUMNS = ("operations", "start GPU work", "casts", "from the GPU", "to the GPU")


def step_of(model: str, rung: str, precision: Literal["float32", "bfloat16"]) -> Placement:
    """Return what a training step would do on a GPU."""
    from ernie_gram.pretraining.job import PretrainNetwork
    from ernie_gram.pretraining.sizes import CorpusSizes
    from ernie_gram.training.program import build_training

    config = config_of(model, rung, OUT_EMB_SIZE, DROPOUT)
    settings = replace(config.optimizer, precision=precision)
    config = replace(config, optimizer=settings)
    network = PretrainNetwork(config, CorpusSizes(TOKENS, MODELS[model][5]), 1)
    world = World(0, 1, current_place())
    return simulate(build_training(network, settings, lambda step: 1e-4, world).main, read_table())


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=MODELS, default="base")
    parser.add_argument("--rungs", nargs="+", choices=OBJECTIVE_RUNGS, default=["explicit", "full"])
    parser.add_argument("--precisions", nargs="+", choices=("float32", "bfloat16"), default=["float32", "bfloat16"])
    parser.add_argument("--copies", action="store_true", help="also list the copies, with the number of each")
    arguments = parser.parse_args()
    pretend()
    enter_kernels()
    start_world("gpu")
    print(f"| rung | precision | {' | '.join(COLUMNS)} |")
    print("| --- | --- |" + " ---: |" * len(COLUMNS))
    for rung in arguments.rungs:
        for precision in arguments.precisions:
            found = step_of(arguments.model, rung, precision)
            numbers = (found.operations, found.launches, found.casts, len(found.to_host), len(found.to_gpu))
            print(f"| {rung} | {precision} | {' | '.join(f'{number:,}' for number in numbers)} |", flush=True)
            if arguments.copies:
                for name, copies in (("from", found.to_host), ("to", found.to_gpu)):
                    for copy, count in Counter(map(str, copies)).most_common():
                        print(f"    {name} the GPU: {count} x {copy}")


if __name__ == "__main__":
    main()
