"""The speed of matrix products on this machine, and the memory of this process."""

from __future__ import annotations

import re
import time
import timeit
from functools import partial
from pathlib import Path

import numpy as np
import paddle

from ernie_gram.distributed.device import World, on_cpu
from ernie_gram.kernels.custom_operations import Result, add_operation
from ernie_gram.kernels.products import factor, product
from ernie_gram.paddle_private import Value, host_peak

# A product of a feed-forward network of the base model: rows of 4 sequences of 512 tokens.
ROWS, SIZE_IN, SIZE_OUT = 2048, 768, 3072
# Products in a program, on a GPU so many that its start takes a small part of the time.
PRODUCTS_ON_CPU, PRODUCTS_ON_GPU = 2, 512
# Seconds for which a program is repeated; minimum number of runs, because the first are slower.
SECONDS, LEAST_RUNS = 2.0, 6


def matmul_peak(executor: paddle.static.Executor, precision: str, seconds: float = SECONDS) -> float:
    """Return the operations per second of a large matrix product, the fastest of many, on the executor's device.

    Args:
        precision: "float32", "bfloat16" or "float16".
        seconds: for how long products are repeated.

    All processes of a machine should measure at the same time, because they share its cores.
    """
    products = PRODUCTS_ON_CPU if on_cpu() else PRODUCTS_ON_GPU
    program, startup = paddle.static.Program(), paddle.static.Program()
    with paddle.static.program_guard(program, startup), paddle.utils.unique_name.guard():
        dtype, multiply = precision, paddle.matmul
        if on_cpu() and precision == "bfloat16":
            dtype, multiply = "float32", _rounded_product
        left = paddle.full([ROWS, SIZE_IN], 0.01, dtype)
        right = paddle.full([SIZE_IN, SIZE_OUT], 0.01, dtype)
        back = paddle.full([SIZE_OUT, SIZE_IN], 0.01, dtype)
        for _ in range(products // 2):
            left = multiply(multiply(left, right), back)
        # One number is fetched, so that a device has to finish.
        last = left[0, 0].astype("float32")
    found: list[float] = []
    deadline = time.monotonic() + seconds
    while len(found) < LEAST_RUNS or time.monotonic() < deadline:
        found.append(timeit.timeit(partial(executor.run, program, fetch_list=[last]), number=1))
    return products * 2 * ROWS * SIZE_IN * SIZE_OUT / min(found)


def _rounded_product(x: Value, y: Value) -> Value:
    return add_operation("rounded_product", _multiply_rounded, (x, y), (Result(0, last=y.shape[1]),))[0]


def _multiply_rounded(x: np.ndarray, y: np.ndarray, out: np.ndarray) -> None:
    product(factor(x, True), factor(y, True), out)


def allocated_peak(world: World) -> int:
    """Return the largest number of bytes that Paddle has allocated at one time on this process's device."""
    if world.place.is_gpu_place():
        return int(paddle.device.cuda.max_memory_allocated(world.place))
    return host_peak()


def process_peak() -> int:
    """Return the largest number of bytes of main memory that this process has had."""
    # Not with getrusage, which may return the peak of the process that started this one.
    return 1024 * int(re.findall(r"^VmHWM:\s*(\d+)", Path("/proc/self/status").read_text(), re.MULTILINE)[0])
