"""Seconds and memory of a training step on this machine: `python -m tests.benchmarks.pretrain_step [--model base]`.

Random sequences of full length, 15 % of the slots masked, explicit objective; each setting in a process of its own.
`--torch` times the same encoder and a masked-LM head over the same classes in Hugging Face's BERT, if torch and
transformers are installed.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
TOKENS = 30522
MODELS = {
    # name: (layers, hidden, heads, batch, length, n-grams, steps)
    "small": (4, 256, 4, 32, 128, 30_000, 5),
    "base": (12, 768, 12, 4, 512, 0, 3),
    "base_300k": (12, 768, 12, 4, 512, 300_000, 3),
}


def random_batch(batch: int, length: int, classes: int) -> dict[str, np.ndarray]:
    """Sequences without padding."""
    random = np.random.default_rng(0)
    masked = round(0.15 * length)
    slots = np.sort(np.argsort(random.random((batch, length - 2)))[:, :masked] + 1) + np.arange(batch)[:, None] * length
    return {
        "input_ids": random.integers(200, TOKENS, (batch, length)),
        "lengths": np.full(batch, length),
        "slots": slots.flatten(),
        "coarse_labels": random.integers(0, classes, slots.size),
    }


def time_ours(name: str, out_emb_size: int, dropout: float) -> list[float]:
    """Seconds of each step after the first."""
    from ernie_gram import distributed
    from ernie_gram.config import OptimizerConfig, PretrainConfig
    from ernie_gram.model import Sizes
    from ernie_gram.model_config import ModelConfig
    from ernie_gram.program import build_training

    layers, hidden, heads, batch, length, ngrams, steps = MODELS[name]
    import paddle

    world = distributed.start("cpu")
    model = ModelConfig(
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        out_emb_size=out_emb_size,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
    )
    program = build_training(PretrainConfig(model=model, optimizer=OptimizerConfig()), Sizes(TOKENS, ngrams))
    executor = paddle.static.Executor(world.place)
    executor.run(program.startup)
    feed = random_batch(batch, length, TOKENS + ngrams)
    return _times(lambda: program.run(executor, feed), steps)


def time_torch(name: str, dropout: float) -> list[float]:
    """The same for Hugging Face's BERT with a head over all classes at the masked slots only."""
    import torch
    from transformers import BertConfig, BertModel

    layers, hidden, heads, batch, length, ngrams, steps = MODELS[name]
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=TOKENS,
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=4 * hidden,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
    )
    encoder = BertModel(config, add_pooling_layer=False)
    head = torch.nn.Sequential(torch.nn.Linear(hidden, 128), torch.nn.GELU(), torch.nn.Linear(128, TOKENS + ngrams))
    parameters = [*encoder.parameters(), *head.parameters()]
    optimizer = torch.optim.AdamW(parameters, 1e-4)
    feed = {key: torch.as_tensor(value) for key, value in random_batch(batch, length, TOKENS + ngrams).items()}

    def step() -> float:
        optimizer.zero_grad()
        encoded = encoder(feed["input_ids"]).last_hidden_state.flatten(0, 1)[feed["slots"]]
        loss = torch.nn.functional.cross_entropy(head(encoded), feed["coarse_labels"])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        return float(loss)

    return _times(step, steps)


def _times(step: object, steps: int) -> list[float]:
    seconds = []
    for _ in range(steps + 1):
        start = time.perf_counter()
        step()  # type: ignore[operator]
        seconds.append(time.perf_counter() - start)
    return seconds[1:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", nargs="+", choices=MODELS, default=["small"])
    parser.add_argument("--out_emb_size", type=int, default=128)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--torch", action="store_true", help="time Hugging Face's BERT too")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        name = arguments.model[0]
        ours = arguments.one == "ours"
        seconds = (
            time_ours(name, arguments.out_emb_size, arguments.dropout) if ours else time_torch(name, arguments.dropout)
        )
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        print(json.dumps({"seconds": float(np.median(seconds)), "peak": peak}))
        return
    print("| model | code | seconds a step | peak GB |\n| --- | --- | ---: | ---: |")
    for name in arguments.model:
        for code in ["ours", "torch"] if arguments.torch else ["ours"]:
            command = [sys.executable, "-m", "tests.benchmarks.pretrain_step", "--one", code, "--model", name]
            command += ["--out_emb_size", str(arguments.out_emb_size), "--dropout", str(arguments.dropout)]
            tunables = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1", "OMP_NUM_THREADS": str(os.cpu_count())}
            done = subprocess.run(
                command, cwd=ROOT, env={**tunables, **os.environ}, capture_output=True, text=True, check=True
            )
            result = json.loads(done.stdout.splitlines()[-1])
            print(f"| {name} | {code} | {result['seconds']:.2f} | {result['peak']:.2f} |", flush=True)


if __name__ == "__main__":
    main()
