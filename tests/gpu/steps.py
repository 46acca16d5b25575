"""A training step on random batches of full sequences; logs what a step copies:

    python -m tests.gpu.steps PRECISION RUNG

Paddle writes its operations and copies to standard error if the environment asks for it (see test_steps.py); the last
step begins after the line STEP.
"""

from __future__ import annotations

import os
import sys

from ernie_gram.distributed.world import start_world
from tests.benchmarks.pretrain_step import batch_of, config_of, sizes_of

STEP, MODEL = "the logged step", "tiny"


def main() -> None:
    """Make three steps; the first ones prepare the program."""
    precision, rung = sys.argv[1:]
    world = start_world("gpu", precision)
    import paddle

    from tests.support.static_programs import training_program

    config, executor = config_of(MODEL, rung, precision), paddle.static.Executor(world.place)
    program, batch = training_program(config, sizes_of(MODEL)), batch_of(config, MODEL)
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
