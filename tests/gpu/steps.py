"""A training step on random batches of full sequences, and a script that logs what a step copies:

    python -m tests.gpu.steps PRECISION RECOMPUTE

Paddle writes its operations and copies to standard error if the environment asks for it (see test_steps.py); the last
step begins after the line STEP.
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace

from ernie_gram.config.loading import load_config
from ernie_gram.distributed.world import World, start_world
from ernie_gram.pretraining.config import PretrainConfig
from ernie_gram.pretraining.sizes import BatchShape, CorpusSizes, assumed_shape
from ernie_gram.training.config import skips_updates
from ernie_gram.training.program import Program, build_training
from reader.batches.fields import Batch
from reader.system.installation import CONF
from tests.support.random_step import random_batch

STEP = "the logged step"
CONFIG = CONF / "pretrain" / "base_en_16g.yaml"
SMALL = ("--model.hidden_size=48", "--model.num_hidden_layers=2", "--model.num_attention_heads=4")
TOKENS_PER_UNIT = 1.9


def step_program(config: PretrainConfig, sizes: CorpusSizes, world: World) -> Program:
    """Return the program of a training step of one process, without accumulation."""
    # Imported late: it loads Paddle.
    from ernie_gram.pretraining.job import PretrainNetwork

    settings, network = config.optimizer, PretrainNetwork(config, sizes, world.size)
    skips = skips_updates(settings, config.trainer)
    return build_training(network, settings, world, recompute=config.trainer.recompute, skips=skips)


def base_step(
    sequences: int, precision: str, world: World, *more: str, small: bool = False
) -> tuple[Program, Batch, PretrainConfig, CorpusSizes, BatchShape]:
    """Return the program of a step of base_en_16g, its batch, and what they were made of; `small` for a CPU."""
    given = [*SMALL, "--data.max_seq_len=64"] if small else []
    options = [f"--config={CONFIG}", f"--optimizer.precision={precision}", *given, *more]
    config = load_config(PretrainConfig, options)[0]
    config = replace(config, trainer=replace(config.trainer, micro_batch=None))
    config = replace(config, data=replace(config.data, batch_size=sequences))
    sizes = CorpusSizes(1000, 600) if small else CorpusSizes(30_522, 300_000)
    shape = assumed_shape(config, sequences, TOKENS_PER_UNIT)
    return step_program(config, sizes, world), random_batch(config, sizes, shape), config, sizes, shape


def main() -> None:
    """Make three steps; the first ones prepare the program."""
    import paddle

    precision, recompute = sys.argv[1:]
    world = start_world("gpu", precision)
    program, batch, *_ = base_step(4, precision, world, f"--trainer.recompute={recompute}", small=True)
    executor = paddle.static.Executor(world.place)
    with paddle.static.scope_guard(paddle.static.Scope()):
        executor.run(program.startup)
        for step in range(3):
            if step == 2:
                print(STEP, file=sys.stderr, flush=True)
            program.step(executor, batch)
    sys.stderr.flush()
    # With GLOG_vmodule, Paddle 3.3.1 fails at a normal exit.
    os._exit(0)


if __name__ == "__main__":
    main()
