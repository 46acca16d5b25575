"""Measure loss and gradients of a softmax over hundreds of thousands of classes: `python -m tests.benchmarks.softmax`.

Each variant runs in a separate process, one after the other. The table shows wall and CPU seconds, and the peak memory
beyond that of the inputs. "plain" is one matrix product and Paddle's cross entropy.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]


def measure(variant: str, rows: int, classes: int, size: int, runs: int = 3) -> dict[str, float]:
    """Return the median wall and CPU seconds of a run, the peak memory beyond the inputs in GB, and the loss."""
    from ernie_gram.distributed.world import start_world
    from ernie_gram.model.layers import linear
    from ernie_gram.pretraining.chunked_softmax import LazyLogits, chunks_for, cross_entropy

    import paddle  # isort: skip

    place = start_world("cpu").place
    main, startup = paddle.static.Program(), paddle.static.Program()
    random = np.random.default_rng(0)
    with paddle.static.program_guard(main, startup):
        x = paddle.static.data("x", [None, size])
        labels = paddle.static.data("labels", [None], "int64")
        x.stop_gradient = False
        start = paddle.nn.initializer.Normal(0, 0.1)
        table, bias = (
            paddle.create_parameter(shape, "float32", attr=paddle.ParamAttr(initializer=start))
            for shape in ([classes, size], [classes])
        )
        if variant == "plain":
            logits = linear(paddle.matmul(x, table, transpose_y=True), bias)
            total = paddle.nn.functional.cross_entropy(logits, labels, reduction="sum")
        else:
            chunks = 1 if variant == "ours, one chunk" else chunks_for(rows, classes)
            found = cross_entropy(LazyLogits(x, table, bias), labels, chunks, True, sample=variant == "ours, sampling")
            total = found.total if found.sampled is None else found.total + 0 * found.sampled.sum().astype("float32")
        gradients = paddle.static.gradients([total], [x, table, bias])
        fetches = [total, *(gradient.flatten()[:1] for gradient in gradients)]
    executor = paddle.static.Executor(place)
    paddle.seed(1)
    executor.run(startup)
    feed = {
        "x": random.standard_normal((rows, size)).astype("float32"),
        "labels": random.integers(0, classes, rows),
    }
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    walls, cpus = [], []
    for _ in range(runs + 1):
        wall, cpu = time.perf_counter(), time.process_time()
        loss = executor.run(main, feed=feed, fetch_list=fetches)[0]
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    peak = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1e6
    return {"wall": float(np.median(walls[1:])), "cpu": float(np.median(cpus[1:])), "peak": peak, "loss": float(loss)}


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1024)
    parser.add_argument("--classes", type=int, default=330_000)
    parser.add_argument("--size", type=int, default=128)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    sizes = (arguments.rows, arguments.classes, arguments.size)
    if arguments.one:
        print(json.dumps(measure(arguments.one, *sizes)))
        return
    print(f"{sizes[0]} rows, {sizes[1]} classes, size {sizes[2]}\n")
    print("| way | wall s | CPU s | peak GB beyond the inputs | loss |\n| --- | ---: | ---: | ---: | ---: |")
    for variant in ("plain", "ours, one chunk", "ours", "ours, sampling"):
        command = [sys.executable, "-m", "tests.benchmarks.softmax", "--one", variant]
        command += ["--rows", str(sizes[0]), "--classes", str(sizes[1]), "--size", str(sizes[2])]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        seen = json.loads(done.stdout.splitlines()[-1])
        print(
            f"| {variant} | {seen['wall']:.2f} | {seen['cpu']:.2f} | {seen['peak']:.2f} | {seen['loss']:.6g} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
