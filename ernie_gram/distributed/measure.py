"""The speed of this machine: its matrix products, and its sums over processes."""

from __future__ import annotations

import statistics
import time

# isort: off
from ernie_gram.distributed.world import World  # before Paddle: it sets the number of threads

import numpy as np
import paddle
import paddle.distributed as dist
# isort: on

# A product of a feed-forward network of the base model: rows of 4 sequences of 512 tokens.
ROWS, SIZE_IN, SIZE_OUT = 2048, 768, 3072
# Products per program, and seconds for which programs are repeated: the first ones are slower.
PRODUCTS, SECONDS = 8, 2.0
EXCHANGED_NUMBERS = 8 << 20
EXCHANGES = 5


def matmul_peak(executor: paddle.static.Executor, precision: str) -> float:
    """Return the operations per second of a large matrix product, the fastest of many, on the executor's device.

    `precision` is "float32", "bfloat16" or "float16". All processes of a machine should measure at the same time,
    because they share its cores.
    """
    program, startup = paddle.static.Program(), paddle.static.Program()
    with paddle.static.program_guard(program, startup), paddle.utils.unique_name.guard():
        left = paddle.full([ROWS, SIZE_IN], 0.01, precision)
        right = paddle.full([SIZE_IN, SIZE_OUT], 0.01, precision)
        back = paddle.full([SIZE_OUT, SIZE_IN], 0.01, precision)
        for _ in range(PRODUCTS // 2):
            left = paddle.matmul(paddle.matmul(left, right), back)
        # One number is fetched, so that a device has to finish.
        last = left[0, 0].astype("float32")
    seconds: list[float] = []
    deadline = time.monotonic() + SECONDS
    while len(seconds) < 2 or time.monotonic() < deadline:
        start = time.perf_counter()
        executor.run(program, fetch_list=[last])
        seconds.append(time.perf_counter() - start)
    return PRODUCTS * 2 * ROWS * SIZE_IN * SIZE_OUT / min(seconds)


def exchange_bandwidth(executor: paddle.static.Executor, world: World) -> float:
    """Return the bytes per second that a process sends while tensors are summed over all processes.

    It is computed as for a ring, in which each process sends 2 (n - 1) / n times the bytes of a tensor.
    """
    program = paddle.static.Program()
    with paddle.static.program_guard(program, paddle.static.Program()), paddle.utils.unique_name.guard():
        tensor = paddle.zeros([EXCHANGED_NUMBERS], "float32")
        dist.all_reduce(tensor)
        last = tensor[:1]
    seconds = []
    for _ in range(EXCHANGES + 1):
        start = time.perf_counter()
        executor.run(program, fetch_list=[last])
        seconds.append(time.perf_counter() - start)
    sent = 2 * (world.size - 1) / world.size * EXCHANGED_NUMBERS * np.dtype(np.float32).itemsize
    return sent / statistics.median(seconds[1:])
