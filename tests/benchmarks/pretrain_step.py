"""Measure time and memory of a training step: `python -m tests.benchmarks.pretrain_step [--model base]`.

Each rung of the ablation runs in a separate process, one after the other. The sequences are random. Their lengths are
those after explicit masking, if 15 % of the tokens are masked and a masked unit has 1.9 tokens (as with 300,000
n-grams). The column "products alone" is the ratio expected from the matrix products of the forward and backward pass,
for the same number of sequences. `--torch` also times Hugging Face's BERT with the same encoder and a masked-LM head
over the same classes; it needs torch and transformers.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
TOKENS = 30522
MODELS = {
    # name: (layers, hidden, heads, batch, length, n-grams, steps)
    "small": (4, 256, 4, 32, 128, 30_000, 5),
    "base": (12, 768, 12, 4, 512, 0, 3),
    "base_300k": (12, 768, 12, 4, 512, 300_000, 2),
}
RUNGS = ("contiguous", "explicit", "cnp", "enrm", "full")
TOKENS_PER_UNIT = 1.9
Times = list[tuple[float, float]]  # wall and CPU seconds
# The default of run_pretrain.sh.
MALLOC = "glibc.malloc.hugetlb=1:glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=1000000000000"


def shapes(length: int, rung: str) -> tuple[int, int, int]:
    """Return the numbers of context slots, predicted slots and query rows of a sequence of `length` tokens."""
    tokens = round(0.15 * length)
    if rung == "contiguous":
        return length, tokens, 0
    units = round(tokens / TOKENS_PER_UNIT)
    return length - tokens + units, units, tokens if rung in ("cnp", "full") else 0


def random_batch(batch: int, length: int, classes: int, rung: str) -> dict[str, np.ndarray]:
    """Return a batch of random sequences without padding."""
    random = np.random.default_rng(0)
    width, masked, queries = shapes(length, rung)
    slots = np.sort(np.argsort(random.random((batch, width - 2)))[:, :masked] + 1)
    flat_slots = slots + np.arange(batch)[:, None] * width
    labels = random.integers(0, TOKENS if rung == "contiguous" else classes, slots.size)
    fields = {
        "input_ids": random.integers(200, TOKENS, (batch, width)),
        "lengths": np.full(batch, width),
        "slots": flat_slots.flatten(),
        ("token_labels" if rung == "contiguous" else "coarse_labels"): labels,
    }
    if queries:
        fields["query_slots"] = np.sort(np.resize(slots, (batch, queries)))
        fields["query_ranks"] = random.integers(0, 3, (batch, queries))
        fields["fine_rows"] = np.arange(batch * queries)
        fields["fine_labels"] = random.integers(0, TOKENS, batch * queries)
    return fields


def gigaflops(name: str, rung: str, out_emb_size: int) -> float:
    """Return the GFLOP of the matrix products per sequence: forward, and twice as much backward."""
    layers, hidden, heads, _, length, ngrams, _ = MODELS[name]
    slots, masked, queries = shapes(length, rung)

    def encoder(width: int, rows: int) -> float:
        return layers * rows * (24 * width * width + 4 * slots * width)

    classes = TOKENS + (0 if rung == "contiguous" else ngrams)
    total = encoder(hidden, slots + queries) + 2 * masked * classes * out_emb_size
    total += 2 * queries * TOKENS * out_emb_size
    if rung in ("enrm", "full"):
        small = hidden // heads * max(1, heads // 3)
        total += encoder(small, slots) + 2 * slots * hidden * small
        total += 2 * masked * classes * out_emb_size + 2 * slots * hidden * hidden
    return 3 * total / 1e9


def time_ours(name: str, rung: str, out_emb_size: int, dropout: float) -> Times:
    """Return the wall and CPU seconds of each step after the first."""
    from ernie_gram.distributed.world import start_world
    from ernie_gram.model.config import ModelConfig
    from ernie_gram.pretraining.config import DataConfig, PretrainConfig
    from ernie_gram.pretraining.network import VocabularySizes
    from ernie_gram.training.config import OptimizerConfig
    from tests.support.objectives import OBJECTIVES
    from tests.support.static_programs import training_program

    layers, hidden, heads, batch, length, ngrams, steps = MODELS[name]
    import paddle

    world = start_world("cpu")
    model = ModelConfig(
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        out_emb_size=out_emb_size,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
    )
    config = PretrainConfig(
        model=model,
        data=DataConfig(max_seq_len=length, batch_size=batch),
        objective=OBJECTIVES[rung],
        optimizer=OptimizerConfig(),
    )
    program = training_program(config, VocabularySizes(TOKENS, ngrams))
    executor = paddle.static.Executor(world.place)
    executor.run(program.startup)
    feed = random_batch(batch, length, TOKENS + ngrams, rung)
    return _times(lambda: program.run(executor, feed), steps)


def time_torch(name: str, dropout: float) -> Times:
    """Return the same for Hugging Face's BERT; its head predicts all classes, at the masked slots only."""
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
    feed = {
        key: torch.as_tensor(value) for key, value in random_batch(batch, length, TOKENS + ngrams, "explicit").items()
    }

    def step() -> float:
        optimizer.zero_grad()
        encoded = encoder(feed["input_ids"]).last_hidden_state.flatten(0, 1)[feed["slots"]]
        loss = torch.nn.functional.cross_entropy(head(encoded), feed["coarse_labels"])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        return float(loss)

    return _times(step, steps)


def _times(step: Callable[[], object], steps: int) -> Times:
    """Return the wall and CPU seconds of `steps` calls, after a first one that is not counted."""
    seconds = []
    for _ in range(steps + 1):
        wall, cpu = time.perf_counter(), time.process_time()
        step()
        seconds.append((time.perf_counter() - wall, time.process_time() - cpu))
    return seconds[1:]


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", nargs="+", choices=MODELS, default=["small"])
    parser.add_argument("--rungs", nargs="+", choices=RUNGS, default=list(RUNGS))
    parser.add_argument("--out_emb_size", type=int, default=128)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--torch", action="store_true", help="also time Hugging Face's BERT")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        (name,), (rung,) = arguments.model, arguments.rungs
        if arguments.torch:
            times = time_torch(name, arguments.dropout)
        else:
            times = time_ours(name, rung, arguments.out_emb_size, arguments.dropout)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        wall, cpu = np.median(times, axis=0).tolist()
        print(json.dumps({"seconds": wall, "cpu": cpu, "peak": peak}))
        return
    from ernie_gram.distributed.world import processor_name, read_cpuinfo

    print(f"{processor_name(read_cpuinfo())}, {os.cpu_count()} cores\n")
    print("| model | rung | seconds a step | to explicit | CPU seconds | to explicit | products alone | peak GB |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for name in arguments.model:
        # Explicit runs first, because the ratios are relative to it.
        rungs = sorted(arguments.rungs, key=lambda rung: rung != "explicit")
        base: dict[str, float] | None = None
        for rung in [*rungs, *(["torch"] if arguments.torch else [])]:
            command = [sys.executable, "-m", "tests.benchmarks.pretrain_step", "--one", "--model", name]
            command += ["--torch", "--rungs", "explicit"] if rung == "torch" else ["--rungs", rung]
            command += ["--out_emb_size", str(arguments.out_emb_size), "--dropout", str(arguments.dropout)]
            tunables = {"GLIBC_TUNABLES": MALLOC, "OMP_NUM_THREADS": str(os.cpu_count())}
            done = subprocess.run(
                command, cwd=ROOT, env={**tunables, **os.environ}, capture_output=True, text=True, check=True
            )
            result = json.loads(done.stdout.splitlines()[-1])
            base = base or result
            size = arguments.out_emb_size
            expected = "" if rung == "torch" else f"{gigaflops(name, rung, size) / gigaflops(name, rungs[0], size):.2f}"
            ratios = [f"{result[key]:.2f} | {result[key] / base[key]:.2f}" for key in ("seconds", "cpu")]
            print(f"| {name} | {rung} | {' | '.join(ratios)} | {expected} | {result['peak']:.2f} |", flush=True)


if __name__ == "__main__":
    main()
