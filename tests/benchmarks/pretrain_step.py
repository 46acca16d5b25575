"""Measure time and memory of a training step: `python -m tests.benchmarks.pretrain_step [--model base]`.

Each rung of the ablation runs in a separate process, one after the other. The sequences are random. Their lengths are
those after explicit masking, if 15 % of the tokens are masked and a masked unit has 1.9 tokens (as with 300,000
n-grams). The column "products alone" is the ratio expected from the matrix products of the forward and backward pass,
for the same number of sequences, and "predicted" is the memory, both according to ernie_gram.preflight. "of the peak"
is the share of the operations per second that a large product reaches in the same process, with the same threads,
before or after the steps, whichever is faster. `--rungs explicit explicit+recompute` compares a rung with and without
trainer.recompute. `--torch` also times Hugging Face's BERT with the same encoder and a masked-LM head over the same
classes; it needs torch and transformers.
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

from ernie_gram.model.config import ModelConfig
from ernie_gram.planning.memory import rank_memory
from ernie_gram.planning.products import recomputed_flops, step_flops
from ernie_gram.planning.sizes import BatchShape, CorpusSizes
from ernie_gram.pretraining.config import DataConfig, PretrainConfig
from ernie_gram.training.config import TrainerConfig
from tests.support.objectives import OBJECTIVES

ROOT = Path(__file__).resolve().parents[2]
TOKENS = 30522
MODELS = {
    # name: (layers, hidden, heads, batch, length, n-grams, steps)
    "small": (4, 256, 4, 32, 128, 30_000, 5),
    "base": (12, 768, 12, 4, 512, 0, 3),
    "base_300k": (12, 768, 12, 4, 512, 300_000, 2),
}
OBJECTIVE_RUNGS = ("contiguous", "explicit", "cnp", "enrm", "full")
RUNGS = (*OBJECTIVE_RUNGS, *(f"{rung}+recompute" for rung in OBJECTIVE_RUNGS))
TOKENS_PER_UNIT = 1.9
PEAK_SECONDS = 2.0
Times = list[tuple[float, float]]  # wall and CPU seconds
# The default of run_pretrain.sh.
MALLOC = "glibc.malloc.hugetlb=1:glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=1000000000000"


def shapes(length: int, rung: str) -> tuple[int, int, int]:
    """Return the numbers of context slots, predicted slots and query rows of a sequence of `length` tokens."""
    rung = rung.partition("+")[0]
    tokens = round(0.15 * length)
    if rung == "contiguous":
        return length, tokens, 0
    units = round(tokens / TOKENS_PER_UNIT)
    return length - tokens + units, units, tokens if rung in ("cnp", "full") else 0


def random_batch(batch: int, length: int, classes: int, rung: str) -> dict[str, np.ndarray]:
    """Return a batch of random sequences without padding."""
    rung = rung.partition("+")[0]
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


def config_of(name: str, rung: str, out_emb_size: int, dropout: float) -> PretrainConfig:
    """Return the configuration of a model and a rung; "RUNG+recompute" recomputes the layers."""
    rung, _, recompute = rung.partition("+")
    layers, hidden, heads, batch, length, _, _ = MODELS[name]
    model = ModelConfig(
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        out_emb_size=out_emb_size,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
    )
    return PretrainConfig(
        model=model,
        data=DataConfig(max_seq_len=length, batch_size=batch),
        objective=OBJECTIVES[rung],
        trainer=TrainerConfig(recompute=recompute == "recompute"),
    )


def predictions(config: PretrainConfig, name: str, rung: str) -> tuple[float, float]:
    """Return the predicted operations of a step, and its predicted bytes of memory without those of the process."""
    _, _, _, batch, length, ngrams, _ = MODELS[name]
    slots, masked, queries = shapes(length, rung)
    sizes, shape = CorpusSizes(TOKENS, ngrams), BatchShape(batch, slots, masked, queries, queries)
    flops = sum(step_flops(config, sizes, shape).values()) + recomputed_flops(config, shape)
    return flops, rank_memory(config, sizes, shape, 1).total


def time_ours(name: str, rung: str, out_emb_size: int, dropout: float) -> tuple[Times, float, int]:
    """Return the wall and CPU seconds of each step after the first, operations per second of a large product, and the
    largest number of bytes that Paddle has had allocated."""
    from ernie_gram.distributed.measure import allocated_peak, matmul_peak
    from ernie_gram.distributed.world import start_world
    from ernie_gram.pretraining.network import VocabularySizes
    from tests.support.static_programs import training_program

    _, _, _, batch, length, ngrams, steps = MODELS[name]
    import paddle

    world = start_world("cpu")
    config = config_of(name, rung, out_emb_size, dropout)
    program = training_program(config, VocabularySizes(TOKENS, ngrams))
    executor = paddle.static.Executor(world.place)
    executor.run(program.startup)
    feed = random_batch(batch, length, TOKENS + ngrams, rung)
    before = matmul_peak(executor, "float32", PEAK_SECONDS)
    times = _times(lambda: program.step(executor, feed), steps)
    allocated = allocated_peak(world)
    return times, max(before, matmul_peak(executor, "float32", PEAK_SECONDS)), allocated


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
    parser.add_argument("--rungs", nargs="+", choices=RUNGS, default=list(OBJECTIVE_RUNGS))
    parser.add_argument("--out_emb_size", type=int, default=128)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--torch", action="store_true", help="also time Hugging Face's BERT")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        (name,), (rung,) = arguments.model, arguments.rungs
        if arguments.torch:
            times, product, allocated = time_torch(name, arguments.dropout), 0.0, 0
        else:
            times, product, allocated = time_ours(name, rung, arguments.out_emb_size, arguments.dropout)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        wall, cpu = np.median(times, axis=0).tolist()
        found = {"seconds": wall, "cpu": cpu, "product": product, "peak": peak, "allocated": allocated / 1e9}
        print(json.dumps(found))
        return
    from ernie_gram.distributed.world import processor_name, read_cpuinfo

    print(f"{processor_name(read_cpuinfo())}, {os.cpu_count()} cores\n")
    columns = ["seconds a step", "to explicit", "CPU seconds", "to explicit", "products alone", "of the peak"]
    columns += ["peak GB", "of it allocated by Paddle", "predicted"]
    print(f"| model | rung | {' | '.join(columns)} |")
    print("| --- | --- |" + " ---: |" * len(columns))
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
            ratios = [f"{result[key]:.2f} | {result[key] / base[key]:.2f}" for key in ("seconds", "cpu")]
            cells = [*ratios, "", "", f"{result['peak']:.2f}", "", ""]
            if rung != "torch":
                predicted = {
                    each: predictions(config_of(name, each, arguments.out_emb_size, arguments.dropout), name, each)
                    for each in (rungs[0], rung)
                }
                cells[2] = f"{predicted[rung][0] / predicted[rungs[0]][0]:.2f}"
                cells[3] = f"{predicted[rung][0] / (result['seconds'] * result['product']):.0%}"
                cells[5:] = [f"{result['allocated']:.2f}", f"{predicted[rung][1] / 1e9:.2f}"]
            print(f"| {name} | {rung} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
