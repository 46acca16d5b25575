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
from pathlib import Path
from typing import Any

import numpy as np

from tests.benchmarks.measure import step_seconds

HEAD_SIZE = 128
IGNORED = -100


def main() -> None:
    """Run the command line."""
    import torch
    from transformers import BertConfig, BertForMaskedLM, BertModel

    job, batch = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")), np.load(sys.argv[2])
    torch.manual_seed(0)
    torch.set_num_threads(job["threads"])
    config = BertConfig(vocab_size=job["tokens"], **job["model"])
    ids, slots, labels = (torch.as_tensor(batch[key]) for key in ("input_ids", "slots", "labels"))
    everywhere = torch.full(ids.shape, IGNORED)
    everywhere.view(-1)[slots] = labels % job["tokens"]
    encoder: Any = BertForMaskedLM(config)
    head = torch.nn.Sequential()
    if job["tool"] == "bert":
        encoder = BertModel(config, add_pooling_layer=False)
        layers = (torch.nn.Linear(config.hidden_size, HEAD_SIZE), torch.nn.GELU())
        head = torch.nn.Sequential(*layers, torch.nn.Linear(HEAD_SIZE, job["classes"]))
    network = torch.nn.ModuleList([encoder, head])
    optimizer = torch.optim.AdamW(network.parameters(), 1e-4, weight_decay=0.01, fused=True)
    network.train()

    def step() -> float:
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=job["precision"] == "bfloat16"):
            if job["tool"] == "bert":
                rows = encoder(ids).last_hidden_state.flatten(0, 1)[slots]
                loss = torch.nn.functional.cross_entropy(head(rows), labels)
            else:
                loss = encoder(ids, labels=everywhere).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        return float(loss.detach())

    found = step_seconds(step, job["steps"])
    print(json.dumps({**found, "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6}))


if __name__ == "__main__":
    main()
