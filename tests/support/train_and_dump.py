"""Train, then write this rank's parameters to RANK.npz in the folder given by the environment variable DUMP."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np

from ernie_gram.config.loading import load_config
from ernie_gram.distributed import collectives
from ernie_gram.distributed.world import RANK, WORLD_SIZE, start_world
from ernie_gram.pretraining import chunked_softmax
from ernie_gram.pretraining.config import PretrainConfig
from ernie_gram.pretraining.job import pretraining_job
from ernie_gram.pretraining.prepare import prepare
from ernie_gram.training.trainer import Trainer
from ernie_gram.training.variables import get_arrays

import paddle  # isort: skip

config, _ = load_config(PretrainConfig, sys.argv[1:], "train_and_dump", "", {})
run = prepare(config, WORLD_SIZE)
run.output.mkdir(parents=True, exist_ok=True)
world = start_world("cpu")
# Each rank draws other start values: those of rank 0 must reach the others.
plain_seed = paddle.seed
paddle.seed = lambda seed: plain_seed(seed + RANK)
# Ranks draw different samples; without randomness, two ranks compute what one process does.
chunked_softmax._sample = lambda p, blocks: p.argmax(-1)
# Many buckets even for a small model.
collectives.BUCKET_NUMBERS = 1000
trainer = Trainer(pretraining_job(run, world), world)
trainer.train()
np.savez(Path(os.environ["DUMP"]) / f"{world.rank}.npz", **get_arrays(trainer.program.parameters))
