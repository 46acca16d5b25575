#!/usr/bin/env bash
# paddlepaddle 3.3.1, paddle.io: which seed decides the order of the data.
#
# Behaviour: paddle.seed has no influence on shuffle=True. DataLoader and BatchSampler draw from NumPy's global
# generator; DistributedBatchSampler from RandomState(epoch) alone, whatever was seeded: every run has the same order of
# the data.
#
# Why it surprises: the page of paddle.seed calls it the seed of the global generator, and in PyTorch (manual_seed, and
# DistributedSampler's own seed) it decides the order too. So a run seeded by paddle.seed only is not repeatable on one
# process, and the runs of "five seeds" on several processes differ in weights and dropout, but not in the data: their
# spread is too small. Way round: np.random.seed, and set_epoch(seed * epochs + epoch) on several processes.
#
# Output seen:
# loader       another order after another paddle.seed: False, np.random.seed: True , random.seed: False
# batches      another order after another paddle.seed: False, np.random.seed: True , random.seed: False
# distributed  another order after another paddle.seed: False, np.random.seed: False, random.seed: False
# distributed is RandomState(epoch).shuffle: [993, 859, 298, 553, 672, 971]
set -euo pipefail
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp"
python3.11 -m venv env
env/bin/python -m pip install -q --disable-pip-version-check paddlepaddle==3.3.1 numpy==2.4.6
GLOG_minloglevel=2 env/bin/python -W ignore - <<'EOF'
import random

import numpy as np
import paddle
from paddle.io import BatchSampler, DataLoader, DistributedBatchSampler


class Numbers(paddle.io.Dataset):
    def __len__(self):
        return 1000

    def __getitem__(self, index):
        return index


def loader():
    return [int(x) for batch in DataLoader(Numbers(), batch_size=50, shuffle=True) for x in batch.flatten()]


def batches():
    return [x for batch in BatchSampler(Numbers(), shuffle=True, batch_size=50) for x in batch]


def distributed():
    sampler = DistributedBatchSampler(Numbers(), 50, num_replicas=1, rank=0, shuffle=True)
    return [x for batch in sampler for x in batch]


def order(shuffle, paddle_seed, numpy_seed, python_seed):
    paddle.seed(paddle_seed), np.random.seed(numpy_seed), random.seed(python_seed)
    return shuffle()


seen = {}
for shuffle in (loader, batches, distributed):
    first = order(shuffle, 1, 1, 1)
    seen[shuffle.__name__] = [order(shuffle, *seeds) != first for seeds in ((2, 1, 1), (1, 2, 1), (1, 1, 2))]
    print(f"{shuffle.__name__:12s} another order after another paddle.seed: {seen[shuffle.__name__][0]!s:5}, "
          f"np.random.seed: {seen[shuffle.__name__][1]!s:5}, random.seed: {seen[shuffle.__name__][2]}")
print("distributed is RandomState(epoch).shuffle:", [int(x) for x in distributed()[:6]])
expected = {"loader": [False, True, False], "batches": [False, True, False], "distributed": [False, False, False]}
start = np.arange(1000)
np.random.RandomState(0).shuffle(start)
raise SystemExit(0 if seen == expected and distributed() == start.tolist() else "the behaviour has changed")
EOF
