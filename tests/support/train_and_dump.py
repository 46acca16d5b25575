"""Train, then write this rank's parameters to RANK.npz in the folder given by the environment variable DUMP."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np

from ernie_gram.config.loading import load_config
from ernie_gram.distributed.world import RANK, WORLD_SIZE, start_world
from ernie_gram.kernels import classes
from ernie_gram.pretraining.config import PretrainConfig
from ernie_gram.pretraining.job import pretraining_job
from ernie_gram.pretraining.prepare import prepare
from ernie_gram.training.trainer import Trainer
from ernie_gram.training.variables import get_arrays

import paddle  # isort: skip
from ernie_gram.distributed import collectives  # isort: skip

config, _ = load_config(PretrainConfig, sys.argv[1:])
run = prepare(config, WORLD_SIZE, RANK == 0)
run.output.mkdir(parents=True, exist_ok=True)
world = start_world("cpu")
# Each rank draws different initial values, so the test fails unless those of rank 0 are copied to all ranks.
original_seed = paddle.seed
paddle.seed = lambda seed: original_seed(seed + RANK)
# Ranks would draw different samples. Without sampling, two ranks compute the same as one process.
classes.draw = lambda p, *others: p.argmax(-1, others[-1])
# Small buckets, so that even this small model has many of them.
collectives.BUCKET_NUMBERS = 1000
trainer = Trainer(pretraining_job(run, world), world)
trainer.train()
np.savez(Path(os.environ["DUMP"]) / f"{world.rank}.npz", **get_arrays(trainer.updater.parameters))
