"""Measure operations of a training step in Paddle's kernels and in ours: `python -m tests.benchmarks.kernels`.

The table is the ground for what ernie_gram/kernels/ does: for `_ONEDNN_OPERATIONS` in
ernie_gram/distributed/processor.py, for the operations that Numba compiles, and for rounding the factors of products to
bfloat16. Each case runs REPEATS times in a program, on variables that stay where they are; the time of a program
without the operation is subtracted. A figure is the median of RUNS runs: CPU milliseconds with one thread, wall
milliseconds with two. Gradients include the forward pass where they need it. "-" means that there is no such kernel.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tests.benchmarks.processes import ENVIRONMENT

ROOT = Path(__file__).resolve().parents[2]
REPEATS, RUNS = 4, 9
# Sequences x slots, hidden size, inner size and heads of two models.
SIZES = {"4 x 256": (32, 119, 256, 1024, 4), "12 x 768": (4, 476, 768, 3072, 12)}
VARIANTS = ("Paddle", "oneDNN", "compiled", "bfloat16")
ONEDNN = ("matmul", "gelu", "gelu_grad", "softmax", "softmax_grad", "layer_norm", "add", "transpose", "sum")
Shapes = Sequence[Sequence[int]]
Case = tuple[str, Shapes, Callable[..., Any]]


def cases(batch: int, length: int, hidden: int, inner: int, heads: int) -> list[Case]:
    """Return name, shapes of the inputs and the operation of each case of a model."""
    import paddle
    from paddle.nn import functional as F

    from ernie_gram.graph import fuses_attention
    from ernie_gram.kernels.operations import attention_with_gradient
    from ernie_gram.model.layers import ones_column

    rows, size = batch * length, hidden // heads
    inside, outside = [batch, length, inner], [batch, length, hidden]
    scores, by_head = [batch, heads, length, length], [batch, heads, length, size]

    def with_gradient(operation: Callable[..., Any]) -> Callable[..., Any]:
        def build(x: Any, *others: Any) -> Any:
            x.stop_gradient = False
            return paddle.static.gradients([operation(x, *others)], [x], [others[-1] if others else x.detach()])[0]

        return build

    def norm(x: Any, scale: Any, bias: Any, *_: Any) -> Any:
        return F.layer_norm(x, [hidden], scale, bias)

    def biased(x: Any, bias: Any) -> Any:
        return x + paddle.matmul(ones_column(x), bias.unsqueeze(0))

    def dropout(x: Any) -> Any:
        return F.dropout(x, 0.1)

    def attention(projected: Any, bias: Any, *_: Any) -> Any:
        if fuses_attention():
            starts, lengths = paddle.arange(batch + 1) * length, paddle.full([batch], length, "int64")
            return attention_with_gradient(projected, bias.unsqueeze(0), starts, lengths, 0.1, size**-0.5)
        query, key, value = paddle.unbind(projected.transpose([2, 0, 3, 1, 4]))
        weights = F.softmax(paddle.matmul(query * size**-0.5, key, transpose_y=True) + bias)
        return paddle.matmul(F.dropout(weights, 0.1), value).transpose([0, 2, 1, 3])

    together, distances = [batch, length, 3, heads, size], [heads, length, length]
    return [
        ("product x W", [outside, [hidden, inner]], paddle.matmul),
        ("its gradient of x", [inside, [hidden, inner]], lambda g, w: paddle.matmul(g, w, transpose_y=True)),
        ("its gradient of W", [[rows, hidden], [rows, inner]], lambda x, g: paddle.matmul(x, g, transpose_x=True)),
        ("scores q k^T", [by_head, by_head], lambda q, k: paddle.matmul(q, k, transpose_y=True)),
        ("weights x values", [scores, by_head], paddle.matmul),
        ("gelu", [inside], F.gelu),
        ("gelu and gradient", [inside], with_gradient(F.gelu)),
        ("bias and gelu", [inside, [inner]], lambda x, b: F.gelu(biased(x, b))),
        ("softmax", [scores], F.softmax),
        ("softmax and gradient", [scores], with_gradient(F.softmax)),
        ("layer norm", [outside, [hidden], [hidden]], norm),
        ("layer norm and gradient", [outside, [hidden], [hidden], outside], with_gradient(norm)),
        (
            "residual, bias and layer norm",
            [outside, outside, *[[hidden]] * 3],
            lambda x, y, b, scale, shift: norm(x + biased(y, b), scale, shift),
        ),
        ("addition", [inside, inside], lambda x, y: x + y),
        ("transpose of heads", [[batch, length, heads, size]], lambda x: paddle.transpose(x, [0, 2, 1, 3])),
        ("sum over rows", [[rows, inner]], lambda x: paddle.sum(x, 0)),
        ("dropout and gradient", [outside], with_gradient(dropout)),
        ("attention", [together, distances], attention),
        ("attention and gradient", [together, distances, [batch, length, heads, size]], with_gradient(attention)),
        ("norm of a gradient", [[hidden, inner]], lambda x: (x * x).sum()),
    ]


def measure(variant: str, size: str) -> dict[str, tuple[float, float]]:
    """Return CPU and wall milliseconds of each case, for a model's size; those without a kernel are left out."""
    from ernie_gram.distributed.world import start_world

    world = start_world("cpu")
    import paddle

    from ernie_gram.graph import computing
    from ernie_gram.kernels.onednn import use_onednn
    from ernie_gram.kernels.rewriting import use_compiled
    from ernie_gram.kernels.selection import can_fuse_attention
    from ernie_gram.training.variables import set_array, zeros

    executor, random = paddle.static.Executor(world.place), np.random.default_rng(0)

    def milliseconds(shapes: Shapes, build: Callable[..., Any] | None) -> tuple[float, float, int]:
        main, startup = paddle.static.Program(), paddle.static.Program()
        moved = 0
        with paddle.static.program_guard(main, startup), paddle.utils.unique_name.guard():
            inputs = [zeros(f"x{i}", list(shape)) for i, shape in enumerate(shapes)]
            with computing("float32", variant == "compiled" and can_fuse_attention()):
                for _ in range(REPEATS if build else 0):
                    build(*inputs)
        if build and variant == "compiled":
            use_compiled(main, ())
            moved = sum(operation.name().startswith("py_op.") for operation in main.global_block().ops)
        elif build and variant != "Paddle":
            moved = use_onednn(main, ONEDNN if variant == "oneDNN" else (), variant == "bfloat16", ())
        executor.run(startup)
        for tensor in inputs:
            set_array(tensor.name, random.standard_normal(tensor.shape, np.float32))
        found = []
        for _ in range(RUNS + 1):
            cpu, wall = time.process_time(), time.perf_counter()
            executor.run(main)
            found.append((time.process_time() - cpu, time.perf_counter() - wall))
        cpus, walls = zip(*found[1:], strict=True)
        return statistics.median(cpus) * 1e3, statistics.median(walls) * 1e3, moved

    results = {}
    for name, shapes, build in cases(*SIZES[size]):
        empty = milliseconds(shapes, None)
        cpu, wall, moved = milliseconds(shapes, build)
        if moved or variant == "Paddle":
            results[name] = ((cpu - empty[0]) / REPEATS, (wall - empty[1]) / REPEATS)
    return results


def main() -> None:
    """Run the command line."""
    from ernie_gram.distributed.processor import processor_name, read_cpuinfo

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--one", choices=VARIANTS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(arguments.one, arguments.sizes[0])))
        return
    print(processor_name(read_cpuinfo()))
    for size in arguments.sizes:
        found: dict[tuple[str, int], dict[str, tuple[float, float]]] = {}
        for variant in VARIANTS:
            for threads in (1, 2):
                command = [sys.executable, "-m", "tests.benchmarks.kernels", "--one", variant, "--sizes", size]
                environment = {**ENVIRONMENT, "OMP_NUM_THREADS": str(threads)}
                done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True)
                found[variant, threads] = json.loads(done.stdout.splitlines()[-1])
        columns = [f"{variant}, {threads}" for variant in VARIANTS for threads in (1, 2)]
        print(f"\n{size}, milliseconds\n\n| operation | {' | '.join(columns)} |\n| --- |{' ---: |' * len(columns)}")
        for name in found["Paddle", 1]:
            cells = []
            for key, values in found.items():
                cpu_and_wall = values.get(name)
                cells.append("-" if cpu_and_wall is None else f"{cpu_and_wall[key[1] - 1]:.2f}")
            print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
