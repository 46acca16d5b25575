"""Measure time and memory of a training step: `python -m tests.benchmarks.pretrain_step [--model base]`.

Each rung of the ablation runs in a separate process, one after the other. The sequences are random. Their lengths are
those after explicit masking, if 15 % of the tokens are masked and a masked unit has 1.9 tokens (as with 300,000
n-grams). The column "products alone" is the ratio expected from the matrix products of the forward and backward pass,
for the same number of sequences, and "predicted" is the memory, both according to ernie_gram.preflight. "of the peak"
is the share of the operations per second that a large product of the same precision reaches in the same process, with
the same threads, before or after the steps, whichever is faster. `--rungs explicit explicit+recompute` compares a rung
with and without trainer.recompute. Ratios are to the first row of a model.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
from itertools import product
from typing import Any

from ernie_gram.model.config import ModelConfig
from ernie_gram.pretraining.config import DataConfig, PretrainConfig
from ernie_gram.pretraining.sizes import CorpusSizes, assumed_shape
from ernie_gram.training.config import OptimizerConfig, TrainerConfig
from reader.batches.fields import Batch
from reader.errors import one_line_errors
from tests.benchmarks.measure import run_module, step_seconds
from tests.support.objectives import OBJECTIVES
from tests.support.random_step import random_batch

TOKENS = 30522
MODELS = {
    # name: (layers, hidden, heads, batch, length, n-grams, steps)
    "tiny": (2, 48, 4, 4, 64, 600, 5),
    "small_en": (2, 192, 6, 24, 64, 30_000, 20),  # the sizes of conf/pretrain/small_en.yaml
    "small": (4, 256, 4, 32, 128, 30_000, 5),
    "base": (12, 768, 12, 4, 512, 0, 3),
    "base_300k": (12, 768, 12, 4, 512, 300_000, 2),
    "base_en_16g": (12, 768, 12, 8, 512, 300_000, 5),  # measured on GPUs, see tests/gpu
}
OBJECTIVE_RUNGS = ("contiguous", "explicit", "cnp", "enrm", "full")
RUNGS = (*OBJECTIVE_RUNGS, *(f"{rung}+recompute" for rung in OBJECTIVE_RUNGS))
TOKENS_PER_UNIT = 1.9
PEAK_SECONDS = 2.0
PRECISIONS = ("float32", "bfloat16")
COLUMNS = ["seconds a step", "to the first row", "CPU seconds", "to the first row", "first step, CPU seconds"]
COLUMNS += ["products alone", "of the peak", "peak GB", "of it allocated by Paddle", "predicted"]


def config_of(name: str, rung: str, precision: Any) -> PretrainConfig:
    """Return the configuration of a model and a rung; "RUNG+recompute" recomputes the layers."""
    rung, _, recompute = rung.partition("+")
    layers, hidden, heads, batch, length, _, _ = MODELS[name]
    return PretrainConfig(
        model=ModelConfig(hidden_size=hidden, num_hidden_layers=layers, num_attention_heads=heads, out_emb_size=128),
        data=DataConfig(max_seq_len=length, batch_size=batch),
        objective=OBJECTIVES[rung],
        optimizer=OptimizerConfig(precision=precision),
        trainer=TrainerConfig(recompute=bool(recompute)),
    )


def sizes_of(name: str) -> CorpusSizes:
    """Return the numbers of tokens and n-grams of a model."""
    return CorpusSizes(TOKENS, MODELS[name][5])


def batch_of(config: PretrainConfig, name: str) -> Batch:
    """Return a batch of random sequences without padding."""
    return random_batch(config, sizes_of(name), assumed_shape(config, config.data.batch_size, TOKENS_PER_UNIT))


def measure_one(name: str, rung: str, precision: Any, steps: int, device: str = "cpu") -> dict[str, float]:
    """Return what this process measures of a model, rung and precision.

    "product" is the operations per second of a large product, "allocated" the largest number of GB that Paddle has had
    allocated; "flops" and "memory" are the predicted operations of a step, and GB without those of the process.
    """
    from ernie_gram.distributed.world import start_world

    # It loads Paddle with the settings for this processor, so it comes before other imports of Paddle.
    world = start_world(device, precision)
    import paddle

    from ernie_gram.distributed.measure import allocated_peak, matmul_peak
    from ernie_gram.pretraining.terms.catalog import recomputed_flops, step_flops
    from ernie_gram.resources.memory import step_memory
    from tests.support.static_programs import training_program

    config, sizes = config_of(name, rung, precision), sizes_of(name)
    program = training_program(config, sizes)
    executor = paddle.static.Executor(world.place)
    executor.run(program.startup)
    feed = batch_of(config, name)
    before = matmul_peak(executor, precision, PEAK_SECONDS)

    def step() -> None:
        program.step(executor, feed)
        if device == "gpu":
            paddle.device.cuda.synchronize()

    found = step_seconds(step, steps)
    allocated = allocated_peak(world) / 1e9
    fastest = max(before, matmul_peak(executor, precision, PEAK_SECONDS))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    shape = assumed_shape(config, config.data.batch_size, TOKENS_PER_UNIT)
    flops = step_flops(config, sizes, shape) + recomputed_flops(config, shape)
    memory = sum(step_memory(config, sizes, shape, cpu=True).values()) / 1e9
    return {**found, "product": fastest, "peak": peak, "allocated": allocated, "flops": flops, "memory": memory}


def report(arguments: argparse.Namespace) -> None:
    """Measure everything and print the table."""
    from ernie_gram.distributed.processor import processor_name, read_cpuinfo

    threads = arguments.threads
    print(f"{processor_name(read_cpuinfo())}, {threads} threads\n")
    print(f"| model | rung | precision | {' | '.join(COLUMNS)} |")
    print("| --- | --- | --- |" + " ---: |" * len(COLUMNS))
    for name in arguments.model:
        steps = arguments.steps or MODELS[name][-1]
        base: dict[str, float] = {}
        # Explicit runs first, because the ratios are relative to it.
        rungs = sorted(arguments.rungs, key=lambda rung: rung != "explicit")
        for rung, precision in product(rungs, arguments.precision):
            one = ("--one", name, rung, precision, str(steps))
            found = run_module(sys.executable, "pretrain_step", *one, threads=threads)
            base = base or found
            cells = [f"{value:.2f}" for key in ("seconds", "cpu") for value in (found[key], found[key] / base[key])]
            share = found["flops"] / (found["seconds"] * found["product"])
            cells += [f"{found['first']:.2f}", f"{found['flops'] / base['flops']:.2f}", f"{share:.0%}"]
            cells += [f"{found[key]:.2f}" for key in ("peak", "allocated", "memory")]
            print(f"| {name} | {rung} | {precision} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", nargs="+", choices=MODELS, default=["small"])
    parser.add_argument("--rungs", nargs="+", choices=RUNGS, default=list(OBJECTIVE_RUNGS))
    parser.add_argument("--precision", nargs="+", choices=PRECISIONS, default=["float32"])
    parser.add_argument("--steps", type=int, help="steps after the first (default: that of the model)")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="default: that of the cores")
    report(parser.parse_args())


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(measure_one(*sys.argv[2:5], int(sys.argv[5]))))
    else:
        one_line_errors(main)
