"""A pretended GPU: Paddle's package for CPUs reports GPUs, and computes what is meant for them on the CPU.

So everything short of the device itself can be tested without one: which device a process chooses, which branches it
takes, and that each function that it calls exists. Only attributes that exist are replaced; a function that Paddle does
not have fails here as it would on a GPU. Paddle's C++ code is not deceived (`paddle.base.core` still says that it was
compiled without CUDA), so it selects CPU kernels, and processes exchange through gloo instead of NCCL.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

# Environment variables for `sitecustomize.py` in this folder: the number of pretended GPUs, and their capability; and a
# folder where each rank writes RANK.txt at its end, with the result of `pretend`, one call a line, and each start of
# Python adds a line to starts.txt.
GPUS, CAPABILITY, CALLS = "PRETENDED_GPUS", "PRETENDED_CAPABILITY", "PRETENDED_CALLS"
NAME = "Pretended GPU"
MEMORY = 80 << 30

Replace = Callable[[Any, str, Any], None]


def environment(gpus: int = 1, capability: str = "8.0") -> dict[str, str]:
    """Return the environment variables under which a new process, and those that it starts, pretend."""
    folder = Path(__file__).parent
    path = os.pathsep.join(filter(None, [str(folder), str(folder.parents[2]), os.environ.get("PYTHONPATH")]))
    return {
        "PYTHONPATH": path,
        GPUS: str(gpus),
        CAPABILITY: capability,
        # Paddle's launcher assigns these; its package for CPUs would find none by itself.
        "CUDA_VISIBLE_DEVICES": ",".join(map(str, range(gpus))),
        "PADDLE_DISTRI_BACKEND": "gloo",
    }


def replace_existing(owner: Any, name: str, value: Any) -> None:
    """Set an attribute that exists."""
    if not hasattr(owner, name):
        raise AttributeError(f"{owner.__name__} has no {name}")
    setattr(owner, name, value)


def compute_in_float32(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of tensors that computes in float32, and returns the precision of its first argument."""
    import paddle

    def computed(x: Any, *others: Any) -> Any:
        if x.dtype == paddle.float32:
            return function(x, *others)
        return function(*(each.astype("float32") for each in (x, *others))).astype(x.dtype)

    return computed


def replace_half_precision() -> None:
    """Compute in bfloat16 what is meant to be float16, and in float32 what has no kernel for bfloat16 on a CPU."""
    import paddle

    replace_existing(paddle, "float16", paddle.bfloat16)
    for name in ("linear", "softmax"):
        replace_existing(paddle.nn.functional, name, compute_in_float32(getattr(paddle.nn.functional, name)))


def pretend(gpus: int = 1, capability: tuple[int, int] = (8, 0), replace: Replace = replace_existing) -> list[str]:
    """Make Paddle report GPUs; `replace` sets an attribute, and must fail for one that does not exist.

    Returns a list of what this process does with devices from now on, such as "set_device gpu:0"; it grows.
    """
    import paddle

    from ernie_gram.distributed import device as our_device

    cuda, set_device = paddle.device.cuda, paddle.set_device
    calls: list[str] = []

    class PretendedGpu(paddle.CPUPlace):  # type: ignore[name-defined, misc]
        """A place that says it is a GPU; Paddle's C++ code sees a CPU."""

        number = 0

        def is_gpu_place(self) -> bool:
            return True

        def is_cpu_place(self) -> bool:
            return False

        def gpu_device_id(self) -> int:
            return self.number

        get_device_id = gpu_device_id

        def __repr__(self) -> str:
            return f"Place(pretended gpu:{self.number})"

    def place_of(device: str) -> Any:
        calls.append(f"set_device {device}")
        kind, _, number = device.partition(":")
        place = set_device("cpu")
        if kind != "gpu":
            return place
        gpu = PretendedGpu()
        gpu.number = int(number or 0)
        assert gpu.number < gpus, f"there are only {gpus} pretended GPUs"
        return gpu

    properties = SimpleNamespace(total_memory=MEMORY, multi_processor_count=108)

    def peak(_: Any = None) -> int:
        calls.append("peak")
        return int(paddle.base.core.host_memory_stat_peak_value("Allocated", 0))

    def seed(number: int) -> Any:
        # Paddle's own function seeds the generator of each GPU as well; its package for CPUs has none.
        return paddle.base.core.default_cpu_generator().manual_seed(int(number))

    replace(paddle, "seed", seed)
    replace(our_device, "is_gpu_package", lambda: True)
    replace(paddle, "is_compiled_with_cuda", lambda: True)
    replace(paddle, "set_device", place_of)
    for name, value in {
        "device_count": lambda: gpus,
        "get_device_capability": lambda _=None: capability,
        "get_device_name": lambda _=None: NAME,
        "get_device_properties": lambda _=None: properties,
        "max_memory_allocated": peak,
        "reset_max_memory_allocated": lambda _=None: calls.append("reset peak"),
        "synchronize": lambda _=None: None,
    }.items():
        replace(cuda, name, value)

    return calls


def on_gpu(calls: list[str]) -> list[str]:
    """Return what was done after a GPU was chosen; only for CPUs chosen before may denormal numbers be flushed to 0.

    Args:
        calls: the fixture `pretended_gpu`.
    """
    start = calls.index("set_device gpu:0")
    assert calls[:start].count("flush_denormals") == calls[:start].count("set_device cpu")
    return calls[start + 1 :]
