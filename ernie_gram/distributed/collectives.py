"""Processes and devices. No other file imports fleet or chooses a device.

A job started by `paddle.distributed.launch` has several processes ("ranks"), which work on shares of each batch;
anything else is a world of one. Import this before paddle: the thread count is read as paddle loads.
"""

from __future__ import annotations

import ctypes
import os
import platform
import warnings
from dataclasses import dataclass

WORLD = int(os.environ.get("PADDLE_TRAINERS_NUM", "1"))
RANK = int(os.environ.get("PADDLE_TRAINER_ID", "0"))
LOCAL_WORLD = int(os.environ.get("PADDLE_LOCAL_SIZE", "1"))
# Paddle would use one thread: share the machine's cores among its processes instead.
os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // LOCAL_WORLD)))
# Paddle's C++ side reports on itself at every start; errors still come through.
os.environ.setdefault("GLOG_minloglevel", "2")
warnings.filterwarnings("ignore", category=UserWarning, module=r"paddle\.")

import numpy as np  # noqa: E402
import numpy.typing as npt  # noqa: E402
import paddle  # noqa: E402
import paddle.distributed as dist  # noqa: E402

# Gradients travel in pieces of about this many numbers: one call for each parameter is slow, one for all needs
# a copy of everything.
BUCKET_NUMBERS = 8 << 20


@dataclass(frozen=True)
class World:
    """This process among the others: its rank, their number, and the device it computes on."""

    rank: int
    size: int
    place: paddle.base.core.Place

    @property
    def is_first(self) -> bool:
        return self.rank == 0


def start(device: str) -> World:
    """Choose the device, meet the other processes, and switch to static graphs.

    Raises ValueError for device "gpu" where Paddle has none.
    """
    has_gpu = paddle.is_compiled_with_cuda() and paddle.device.cuda.device_count() > 0
    if device == "gpu" and not has_gpu:
        raise ValueError("trainer.device: gpu asked for, but this Paddle has none; use cpu or auto")
    use_gpu = has_gpu and device != "cpu"
    paddle.set_device("gpu" if use_gpu else "cpu")
    # One operation after the other, in the program's order: otherwise those that draw random numbers overtake each
    # other, and a run could not be repeated; and what was cut into pieces to save memory would be computed at once.
    # (FLAGS_new_executor_serial_run keeps to one thread, but goes through what is ready breadth first.)
    paddle.set_flags({"FLAGS_enable_pir_in_executor_trace_run": True})
    if not use_gpu:
        _flush_denormals()
    if WORLD > 1:
        from paddle.distributed import fleet

        if not use_gpu:
            os.environ["PADDLE_DISTRI_BACKEND"] = "gloo"
        # Before static mode is on: it will not start afterwards.
        fleet.init(is_collective=True, log_level="WARNING")
    paddle.enable_static()
    place = paddle.CUDAPlace(paddle.device.cuda.current_device_id()) if use_gpu else paddle.CPUPlace()
    return World(RANK, WORLD, place)


def _flush_denormals() -> None:
    """Have this thread, and all that it starts from now on, take denormal floats for 0, as a GPU does.

    Gradients at padding are around 1e-38, and a matrix product that meets denormals is ten times slower. x86 only.
    """
    if platform.machine() != "x86_64" or platform.system() != "Linux":
        return
    libm = ctypes.CDLL("libm.so.6")
    environment = (ctypes.c_uint32 * 8)()  # fenv_t; its last word is the MXCSR register
    libm.fegetenv(environment)
    environment[7] |= 0x8040  # flush results to zero, and take operands for zero
    libm.fesetenv(environment)


def sum_over_ranks(tensors: list[paddle.Tensor]) -> list[paddle.Tensor]:
    """In a program: each tensor's sum over all ranks, in the order given.

    The executor may run what does not depend on each other in any order, and ranks that disagree about the
    order of their exchanges would add up the wrong things. So each bucket carries a number of the one before.
    """
    if WORLD == 1 or not tensors:
        return tensors
    summed: list[paddle.Tensor] = []
    before: paddle.Tensor | None = None
    for bucket in _buckets(tensors):
        flat = [tensor.flatten() for tensor in bucket]
        joined = paddle.concat(flat if before is None else [*flat, before])
        dist.all_reduce(joined)
        before = joined[-1:]
        start = 0
        for tensor in bucket:
            size = int(np.prod(tensor.shape))
            summed.append(joined[start : start + size].reshape(tensor.shape))
            start += size
    return summed


def _buckets(tensors: list[paddle.Tensor]) -> list[list[paddle.Tensor]]:
    buckets: list[list[paddle.Tensor]] = [[]]
    numbers = 0
    for tensor in tensors:
        if numbers > BUCKET_NUMBERS:
            buckets.append([])
            numbers = 0
        buckets[-1].append(tensor)
        numbers += int(np.prod(tensor.shape))
    return buckets


def copy_from_first_rank(executor: paddle.static.Executor, names: list[str]) -> None:
    """Give every rank the first one's values of the named float32 parameters."""
    if WORLD == 1:
        return
    scope = paddle.static.global_scope()
    for name in names:
        tensor = scope.find_var(name).get_tensor()
        value = np.array(tensor)
        tensor.set(_sum_on_host(executor, value if RANK == 0 else np.zeros_like(value)), executor.place)


def sum_vector(executor: paddle.static.Executor, vector: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """A vector's sum over all ranks, outside of any program's run."""
    return vector if WORLD == 1 else _sum_on_host(executor, vector)


def agree(executor: paddle.static.Executor, number: int, what: str) -> None:
    """Raise ValueError on the ranks whose `number` is not everyone's: they would compute different things."""
    total = sum_vector(executor, np.array([number], np.float64))[0]
    if total != number * float(WORLD):
        raise ValueError(f"rank {RANK} disagrees with the others about {what}; do all machines see the same files?")


def _sum_on_host(executor: paddle.static.Executor, array: np.ndarray) -> np.ndarray:
    program = paddle.static.Program()
    with paddle.static.program_guard(program, paddle.static.Program()), paddle.utils.unique_name.guard():
        value = paddle.static.data("value", list(array.shape), str(array.dtype))
        total = value * 1
        dist.all_reduce(total)
    return executor.run(program, feed={"value": array}, fetch_list=[total])[0]
