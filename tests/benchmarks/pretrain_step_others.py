"""Time training steps of BERT in transformers, for pretrain_step.py.

It runs in an interpreter of its own, with torch and transformers, and imports nothing of this project but measure.py:
`python -m tests.benchmarks.pretrain_step_others JOB.json BATCH.npz`. It prints one line of JSON. The tools of a job are

- masked_lm: transformers' BertForMaskedLM as it is, which predicts at every slot;
- bert: transformers' BertModel with a head of ours, hidden -> GELU -> classes, at the masked slots only.
"""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.benchmarks.measure import step_seconds

HEAD_SIZE = 128
LEARNING_RATE, WEIGHT_DECAY, CLIP_NORM = 1e-4, 0.01, 1.0
IGNORED = -100

Batch = dict[str, np.ndarray]


def torch_step(job: dict[str, Any], batch: Batch) -> Callable[[], float]:
    """Return a function that makes a training step in PyTorch and returns the loss."""
    import torch
    from transformers import BertConfig, BertForMaskedLM, BertModel

    torch.manual_seed(0)
    torch.set_num_threads(job["threads"])
    config = BertConfig(vocab_size=job["tokens"], **job["model"])
    ids, slots, labels = (torch.as_tensor(batch[key]) for key in ("input_ids", "slots", "labels"))
    if job["tool"] == "masked_lm":
        network: Any = BertForMaskedLM(config)
        everywhere = torch.full(ids.shape, IGNORED)
        everywhere.view(-1)[slots] = labels % job["tokens"]

        def forward() -> Any:
            return network(ids, labels=everywhere).loss
    else:
        encoder = BertModel(config, add_pooling_layer=False)
        layers = (torch.nn.Linear(config.hidden_size, HEAD_SIZE), torch.nn.GELU())
        head = torch.nn.Sequential(*layers, torch.nn.Linear(HEAD_SIZE, job["classes"]))
        network = torch.nn.ModuleList([encoder, head])

        def forward() -> Any:
            rows = encoder(ids).last_hidden_state.flatten(0, 1)[slots]
            return torch.nn.functional.cross_entropy(head(rows), labels)

    optimizer = torch.optim.AdamW(network.parameters(), LEARNING_RATE, weight_decay=WEIGHT_DECAY, fused=True)
    network.train()

    def step() -> float:
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=job["precision"] == "bfloat16"):
            loss = forward()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), CLIP_NORM)
        optimizer.step()
        return float(loss.detach())

    return step


def main() -> None:
    """Run the command line."""
    with open(sys.argv[1], encoding="utf-8") as file:
        job = json.load(file)
    with np.load(sys.argv[2]) as archive:
        batch = dict(archive)
    found = step_seconds(torch_step(job, batch), job["steps"])
    print(json.dumps({**found, "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6}))


if __name__ == "__main__":
    main()
