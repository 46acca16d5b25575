"""Measure time and memory of a training step: `python -m tests.benchmarks.pretrain_step [--model base]`.

Each rung of the ablation runs in a separate process, one after the other. The sequences are random. Their lengths are
those after explicit masking, if 15 % of the tokens are masked and a masked unit has 1.9 tokens (as with 300,000
n-grams). The column "products alone" is the ratio expected from the matrix products of the forward and backward pass,
for the same number of sequences, and "predicted" is the memory, both according to ernie_gram.preflight. "of the peak"
is the share of the operations per second that a large product reaches in the same process, with the same threads,
before or after the steps, whichever is faster. `--rungs explicit explicit+recompute` compares a rung with and without
trainer.recompute. `--hf_python` and `--paddlenlp_python` name interpreters with transformers and with PaddleNLP: then
steps of their models are timed too, with the sequences of `explicit` (see pretrain_step_others.py).
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from ernie_gram.model.config import ModelConfig
from ernie_gram.planning.memory import rank_memory
from ernie_gram.pretraining.config import DataConfig, PretrainConfig
from ernie_gram.pretraining.sizes import BatchShape, CorpusSizes
from ernie_gram.pretraining.terms.catalog import recomputed_flops, step_flops
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
OTHERS = Path(__file__).with_name("pretrain_step_others.py")
OTHER_NAMES = {
    "bert": "transformers, the same head",
    "masked_lm": "transformers, BertForMaskedLM",
    "paddlenlp": "PaddleNLP's ErnieGramModel, the same head",
}
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
    from ernie_gram.planning.trial_step import random_batch as batch_of

    slots, masked, queries = shapes(length, rung)
    config = PretrainConfig(objective=OBJECTIVES[rung.partition("+")[0]])
    return batch_of(config, CorpusSizes(TOKENS, classes - TOKENS), BatchShape(batch, slots, masked, queries, queries))


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
    from ernie_gram.pretraining.sizes import CorpusSizes
    from tests.support.static_programs import training_program

    _, _, _, batch, length, ngrams, steps = MODELS[name]
    import paddle

    world = start_world("cpu")
    config = config_of(name, rung, out_emb_size, dropout)
    program = training_program(config, CorpusSizes(TOKENS, ngrams))
    executor = paddle.static.Executor(world.place)
    executor.run(program.startup)
    feed = random_batch(batch, length, TOKENS + ngrams, rung)
    before = matmul_peak(executor, "float32", PEAK_SECONDS)
    times = _times(lambda: program.step(executor, feed), steps)
    allocated = allocated_peak(world)
    return times, max(before, matmul_peak(executor, "float32", PEAK_SECONDS)), allocated


def time_other(tool: str, python: Path, name: str, dropout: float, threads: int) -> dict[str, float]:
    """Return wall and CPU seconds of a step of another tool's model, the median, and the peak of its memory in GB."""
    layers, hidden, heads, batch, length, ngrams, steps = MODELS[name]
    fields = random_batch(batch, length, TOKENS + ngrams, "explicit")
    model = {
        "hidden_size": hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "intermediate_size": 4 * hidden,
        "hidden_dropout_prob": dropout,
        "attention_probs_dropout_prob": dropout,
    }
    job = {"tool": tool, "tokens": TOKENS, "classes": TOKENS + ngrams, "model": model, "steps": steps}
    with tempfile.TemporaryDirectory() as folder:
        job_file, batch_file = Path(folder) / "job.json", Path(folder) / "batch.npz"
        job_file.write_text(json.dumps({**job, "threads": threads}), encoding="utf-8")
        inputs = {key: fields[key] for key in ("input_ids", "slots")}
        np.savez(batch_file, **inputs, labels=fields["coarse_labels"])
        return _last_line([str(python), "-I", str(OTHERS), str(job_file), str(batch_file)], threads)


def _last_line(command: list[str], threads: int) -> dict[str, float]:
    """Run a command with so many threads, and return what the last line of its output says."""
    environment = {"GLIBC_TUNABLES": MALLOC, "OMP_NUM_THREADS": str(threads), **os.environ}
    done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def _times(step: Callable[[], object], steps: int) -> Times:
    """Return the wall and CPU seconds of `steps` calls, after a first one that is not counted."""
    seconds = []
    for _ in range(steps + 1):
        wall, cpu = time.perf_counter(), time.process_time()
        step()
        seconds.append((time.perf_counter() - wall, time.process_time() - cpu))
    return seconds[1:]


def measure_one(arguments: argparse.Namespace) -> dict[str, float]:
    """Return what this process measures of the only model and the only rung of the arguments."""
    (name,), (rung,) = arguments.model, arguments.rungs
    times, product, allocated = time_ours(name, rung, arguments.out_emb_size, arguments.dropout)
    wall, cpu = np.median(times, axis=0).tolist()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return {"seconds": wall, "cpu": cpu, "product": product, "peak": peak, "allocated": allocated / 1e9}


def report(arguments: argparse.Namespace) -> None:
    """Measure everything and print the table."""
    from ernie_gram.distributed.processor import processor_name, read_cpuinfo

    threads = len(os.sched_getaffinity(0))
    others = [(tool, arguments.hf_python) for tool in ("bert", "masked_lm") if arguments.hf_python]
    others += [("paddlenlp", arguments.paddlenlp_python)] if arguments.paddlenlp_python else []
    print(f"{processor_name(read_cpuinfo())}, {threads} threads\n")
    columns = ["seconds a step", "to explicit", "CPU seconds", "to explicit", "products alone", "of the peak"]
    columns += ["peak GB", "of it allocated by Paddle", "predicted"]
    print(f"| model | rung | {' | '.join(columns)} |")
    print("| --- | --- |" + " ---: |" * len(columns))
    for name in arguments.model:
        # Explicit runs first, because the ratios are relative to it.
        rungs = sorted(arguments.rungs, key=lambda rung: rung != "explicit")
        base: dict[str, float] | None = None
        base_flops = 0.0
        for rung in rungs:
            command = [
                sys.executable,
                "-m",
                "tests.benchmarks.pretrain_step",
                "--one",
                "--model",
                name,
                "--rungs",
                rung,
            ]
            command += ["--out_emb_size", str(arguments.out_emb_size), "--dropout", str(arguments.dropout)]
            result = _last_line(command, threads)
            base = base or result
            flops, memory = predictions(config_of(name, rung, arguments.out_emb_size, arguments.dropout), name, rung)
            base_flops = base_flops or flops
            cells = [
                *_ratios(result, base),
                f"{flops / base_flops:.2f}",
                f"{flops / (result['seconds'] * result['product']):.0%}",
                f"{result['peak']:.2f}",
                f"{result['allocated']:.2f}",
                f"{memory / 1e9:.2f}",
            ]
            print(f"| {name} | {rung} | {' | '.join(cells)} |", flush=True)
        for tool, python in others:
            result = time_other(tool, python, name, arguments.dropout, threads)
            cells = [*_ratios(result, base or result), "", "", f"{result['peak']:.2f}", "", ""]
            print(f"| {name} | {OTHER_NAMES[tool]} | {' | '.join(cells)} |", flush=True)


def _ratios(result: dict[str, float], base: dict[str, float]) -> list[str]:
    return [cell for key in ("seconds", "cpu") for cell in (f"{result[key]:.2f}", f"{result[key] / base[key]:.2f}")]


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", nargs="+", choices=MODELS, default=["small"])
    parser.add_argument("--rungs", nargs="+", choices=RUNGS, default=list(OBJECTIVE_RUNGS))
    parser.add_argument("--out_emb_size", type=int, default=128)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--hf_python", type=Path, help="interpreter with torch and transformers")
    parser.add_argument("--paddlenlp_python", type=Path, help="interpreter with paddlenlp")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure_one(arguments)))
    else:
        report(arguments)


if __name__ == "__main__":
    main()
