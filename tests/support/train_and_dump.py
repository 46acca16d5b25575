"""Train, then write this rank's parameters to RANK.npz in the folder that DUMP names."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np

from ernie_gram.config.loading import load_config
from ernie_gram.distributed import collectives as distributed
from ernie_gram.pretraining import chunked_softmax as softmax
from ernie_gram.pretraining.prepare import prepare
from ernie_gram.training.trainer import Trainer
from ernie_gram.training.variables import get_arrays

import paddle  # isort: skip

config, _ = load_config(sys.argv[1:], "train_and_dump", "", {})
run = prepare(config, distributed.WORLD)
run.output.mkdir(parents=True, exist_ok=True)
world = distributed.start("cpu")
# Ranks seeded apart: what rank 0 draws must reach the others.
plain_seed = paddle.seed
paddle.seed = lambda seed: plain_seed(seed + distributed.RANK)
# Ranks draw samples of their own; for their work to be that of one process, samples must not depend on chance.
softmax._draw = lambda p, blocks: p.argmax(-1)
# Many buckets even in a small model.
distributed.BUCKET_NUMBERS = 1000
trainer = Trainer(run, world)
trainer.train()
np.savez(Path(os.environ["DUMP"]) / f"{world.rank}.npz", **get_arrays(trainer.program.parameters))
