"""The rank and the device of this process, and whether it can do what a run asks for. Paddle is loaded late."""

from __future__ import annotations

import ctypes
import importlib.metadata
import os
import platform
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ernie_gram.distributed.loading import PROCESSES_ON_THIS_MACHINE, load_paddle
from ernie_gram.distributed.processor import no_bfloat16
from reader.errors import InputError, counted

if TYPE_CHECKING:
    from ernie_gram.paddle_private import Place

# The first compute capability with bfloat16 (Ampere).
BFLOAT16_CAPABILITY = (8, 0)
_place: Place | None = None


@dataclass(frozen=True)
class World:
    """This process in its job.

    Attributes:
        rank: number of this process, 0..size - 1.
        size: number of processes.
        place: the device on which this process computes.
    """

    rank: int
    size: int
    place: Place

    @property
    def is_first(self) -> bool:
        """Whether this is rank 0, which writes the log and the checkpoints."""
        return self.rank == 0


def check_device(
    device: str,
    precision: str = "float32",
    processes: int = PROCESSES_ON_THIS_MACHINE,
    key: str = "trainer.device",
    precision_key: str = "optimizer.precision",
) -> bool:
    """Return whether this process computes on a GPU; changes nothing. Paddle is loaded only if a GPU is possible.

    Args:
        device: "cpu", "gpu", or "auto" for a GPU if Paddle finds one.
        precision: of matrix products, "float32", "bfloat16" or "float16".
        processes: of the job on this machine; each has a GPU of its own.
        key, precision_key: the settings of the device and of the precision, for messages.

    Raises InputError if a GPU is asked for and there is none for this process, if there are more processes than GPUs,
    or if the device lacks the precision.
    """
    gpus = 0 if device == "cpu" else visible_gpus()
    if not gpus:
        if device == "gpu":
            package = "" if is_gpu_package() else ", and this is the package for CPUs; install paddlepaddle-gpu"
            raise InputError(f"{key}: gpu asked for, but Paddle sees none{package}; use cpu or auto")
        _check_cpu(precision, precision_key)
        return False
    if processes > gpus:
        raise InputError(
            f"NPROC: {processes} processes on this machine, but Paddle sees {counted(gpus, 'GPU')}; start at most "
            f"{gpus}, make more GPUs visible, or set {key} to cpu"
        )
    from paddle.device import cuda

    from ernie_gram.paddle_private import SELECTED_GPUS

    number = gpu_number()
    if number >= gpus:
        raise InputError(f"{SELECTED_GPUS}: GPU {number} asked for, but Paddle sees {counted(gpus, 'GPU')}, from 0 on")
    if precision == "bfloat16" and (capability := cuda.get_device_capability(number)) < BFLOAT16_CAPABILITY:
        raise InputError(
            f"{precision_key}: bfloat16 needs a GPU of compute capability 8.0 or higher (A100 or later), and "
            f"{cuda.get_device_name(number)} has {capability[0]}.{capability[1]}; use float16 in pre-training, float32 "
            f"in fine-tuning, or set {key} to cpu"
        )
    return True


def _check_cpu(precision: str, precision_key: str) -> None:
    if precision == "float16":
        # In Paddle 3.3.1 for CPUs matmul, add, multiply, gelu, softmax, layer_norm and gather have no such kernels.
        raise InputError(
            f"{precision_key}: float16 needs a GPU, because Paddle has no float16 kernels for a CPU; use "
            "bfloat16 or float32"
        )
    if precision == "bfloat16" and (reason := no_bfloat16()):
        raise InputError(
            f"{precision_key}: bfloat16 is slower than float32 on this CPU, or not possible: {reason}; use float32"
        )


def visible_gpus() -> int:
    """Return the number of GPUs that Paddle sees; 0 with Paddle's package for CPUs, which is not loaded for this."""
    if not is_gpu_package():
        return 0
    paddle = sys.modules.get("paddle") or load_paddle()
    return int(paddle.device.cuda.device_count()) if paddle.is_compiled_with_cuda() else 0


def is_gpu_package() -> bool:
    """Return whether Paddle's package for GPUs is installed; it is not loaded."""
    return any(importlib.metadata.distributions(name="paddlepaddle-gpu"))


def gpu_number() -> int:
    """Return the number of this rank's GPU among those that Paddle sees; Paddle's launcher assigns one to each rank."""
    from ernie_gram.paddle_private import SELECTED_GPUS

    return int(os.environ.get(SELECTED_GPUS, "0").split(",")[0])


def use_device(use_gpu: bool) -> Place:
    """Make the GPU of this rank, or the CPU, Paddle's device; return its place, which `current_place` returns too."""
    global _place
    import paddle

    if not use_gpu:
        _flush_denormals()
    _place = paddle.set_device(f"gpu:{gpu_number()}" if use_gpu else "cpu")
    return _place


def current_place() -> Place:
    """Return the place of the device that this process uses; with the Python API, the device is the caller's."""
    from ernie_gram.paddle_private import expected_place

    return _place or expected_place()


def on_cpu() -> bool:
    """Return whether this process computes on a CPU; programs for a GPU are made of other operations."""
    return bool(current_place().is_cpu_place())


def _flush_denormals() -> None:
    """Make this thread, and all threads that it starts later, treat denormal floats as 0, as a GPU does. x86 only.

    Gradients of padding are around 1e-38, and a matrix product with denormal operands is ten times slower.
    """
    if platform.machine() != "x86_64":
        return
    libm = ctypes.CDLL("libm.so.6")
    environment = (ctypes.c_uint32 * 8)()  # fenv_t; its last word is the MXCSR register
    libm.fegetenv(environment)
    environment[7] |= 0x8040  # flush-to-zero for results, denormals-are-zero for operands
    libm.fesetenv(environment)
