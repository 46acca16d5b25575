"""The device of this process: which one, and whether it can do what a run asks for. Paddle is imported late."""

from __future__ import annotations

import ctypes
import os
import platform
from typing import TYPE_CHECKING

from reader.errors import InputError

if TYPE_CHECKING:
    import paddle

# The first compute capability with bfloat16 (Ampere).
BFLOAT16_CAPABILITY = (8, 0)
_place: paddle.base.core.Place | None = None
MEMORY_EFFICIENT = "memory_efficient"
# The variable in which Paddle's launcher tells a rank the number of its GPU.
_SELECTED_GPUS = "FLAGS_selected_gpus"


def check_device(device: str, precision: str = "float32", attention: str = "plain") -> bool:
    """Return whether this process computes on a GPU; nothing is changed.

    Args:
        device: "cpu", "gpu", or "auto" for a GPU if Paddle finds one.
        precision: of matrix products, "float32", "bfloat16" or "float16".
        attention: see ModelConfig.

    Raises InputError if a GPU is asked for and there is none for this process, or if the device lacks the precision or
    the kernel of memory-efficient attention.
    """
    import paddle

    gpus = visible_gpus()
    if device == "gpu" and not gpus:
        raise InputError(f"trainer.device: gpu asked for, but {_why_no_gpu()}; use cpu or auto")
    if device == "cpu" or not gpus:
        if precision == "float16":
            # In Paddle 3.3.1 for CPUs matmul, add, multiply, gelu, softmax, layer_norm and gather have no such kernels.
            raise InputError(
                "optimizer.precision: float16 needs a GPU, because Paddle has no float16 kernels for a CPU; use "
                "bfloat16 or float32"
            )
        if attention == MEMORY_EFFICIENT:
            raise InputError("model.attention: memory_efficient needs a GPU; use plain")
        return False
    if attention == MEMORY_EFFICIENT and not _has_kernel("memory_efficient_attention_grad"):
        raise InputError("model.attention: this Paddle has no kernel for memory_efficient; use plain")
    number = gpu_number()
    if number >= gpus:
        raise InputError(
            f"trainer.device: this process is to use GPU {number}, but Paddle sees only {gpus}, numbered from 0; start "
            f"at most {gpus} processes (NPROC), or make more GPUs visible (CUDA_VISIBLE_DEVICES)"
        )
    capability = paddle.device.cuda.get_device_capability(number)
    if precision == "bfloat16" and capability < BFLOAT16_CAPABILITY:
        major, minor = capability
        raise InputError(
            f"optimizer.precision: bfloat16 needs a GPU of compute capability 8.0 or higher (A100 or later), and "
            f"{paddle.device.cuda.get_device_name(number)} has {major}.{minor}; use float16"
        )
    return True


def visible_gpus() -> int:
    """Return the number of GPUs that Paddle sees; 0 with Paddle's package for CPUs."""
    import paddle

    return int(paddle.device.cuda.device_count()) if paddle.is_compiled_with_cuda() else 0


def gpu_number() -> int:
    """Return the number of this rank's GPU among those that Paddle sees; Paddle's launcher assigns one to each rank."""
    return int(os.environ.get(_SELECTED_GPUS, "0").split(",")[0])


def use_device(use_gpu: bool) -> paddle.base.core.Place:
    """Make the GPU of this rank, or the CPU, Paddle's device; return its place, which `current_place` returns too."""
    global _place
    import paddle

    if not use_gpu:
        _flush_denormals()
    _place = paddle.set_device(f"gpu:{gpu_number()}" if use_gpu else "cpu")
    return _place


def current_place() -> paddle.base.core.Place:
    """Return the place of the device that this process uses; that of the CPU before one is chosen."""
    import paddle

    return _place or paddle.CPUPlace()


def on_cpu() -> bool:
    """Return whether this process computes on a CPU; programs for a GPU are made of other operations."""
    return _place is None or bool(_place.is_cpu_place())


def _has_kernel(name: str) -> bool:
    import paddle

    return name in paddle.base.core._get_registered_phi_kernels("all")


def _why_no_gpu() -> str:
    import paddle

    if not paddle.is_compiled_with_cuda():
        return "this Paddle is the package for CPUs (paddlepaddle); install paddlepaddle-gpu"
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    return "Paddle sees none" + ("" if visible is None else f" (CUDA_VISIBLE_DEVICES is {visible!r})")


def _flush_denormals() -> None:
    """Make this thread, and all threads that it starts later, treat denormal floats as 0, as a GPU does. x86 only.

    Gradients of padding are around 1e-38, and a matrix product with denormal operands is ten times slower.
    """
    if platform.machine() != "x86_64" or platform.system() != "Linux":
        return
    libm = ctypes.CDLL("libm.so.6")
    environment = (ctypes.c_uint32 * 8)()  # fenv_t; its last word is the MXCSR register
    libm.fegetenv(environment)
    environment[7] |= 0x8040  # flush-to-zero for results, denormals-are-zero for operands
    libm.fesetenv(environment)
