"""What `python -m ernie_gram.gpu_check` asks of a pretended GPU beyond the device (see pretended_gpu), and faults.

The registered kernels are those of a package for GPUs. What is meant to be float16, for which Paddle has no kernels on
a CPU, is bfloat16. A fault is put into new processes from outside: nothing in the project knows of it.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.support import pretended_gpu
from tests.support.pretended_gpu import replace_existing

# The environment variable with a fault, "" for none; pretended_gpu/sitecustomize.py calls `pretend` if it is set.
FAULT = "PRETENDED_FAULT"
WRONG_GRADIENT, HANG = FAULTS = ("wrong gradient", "hang")
# The parameter whose gradient is wrong on the GPU, and the rank that hangs.
PARAMETER, RANK = "encoder_layer_0_ffn_fc_0.w_0", "1"
# Kernels that cannot run on a CPU in another precision either.
NOT_HERE = ("memory_efficient_attention", "memory_efficient_attention_grad")
TABLE = Path(__file__).resolve().parents[1] / "gpu_kernels" / "registered.tsv"


def environment(gpus: int = 1, fault: str = "") -> dict[str, str]:
    """Return the environment variables under which new processes pretend, with a fault or without one."""
    return {**pretended_gpu.environment(gpus), FAULT: fault}


def register_kernels(missing: Sequence[str] = (), replace: pretended_gpu.Replace = replace_existing) -> None:
    """Register the kernels of a package for GPUs (see tests/gpu_kernels), except for those that are to be missing."""
    import paddle

    rows = [line.split("\t") for line in TABLE.read_text(encoding="utf-8").splitlines()[1:]]
    found = {name: [f"(GPU, Undefined(AnyLayout), {dtype})" for dtype in dtypes.split()] for name, dtypes, _ in rows}
    for name in (*NOT_HERE, *missing):
        del found[name]
    # Programs in bfloat16 change the layout on a CPU.
    found["onednn_to_paddle_layout"] = ["(GPU, Undefined(AnyLayout), bfloat16)"]
    replace(paddle.base.core, "_get_registered_phi_kernels", lambda library: found)


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


def make_gradient_wrong() -> None:
    """Let the gradient of a parameter be a hundredth too large in programs that are built for a GPU."""
    import paddle

    from ernie_gram.distributed.device import on_cpu

    gradients = paddle.static.gradients

    def wrong(targets: Any, inputs: list[Any]) -> list[Any]:
        factor = 1.0 if on_cpu() else 1.01
        found = zip(inputs, gradients(targets, inputs), strict=True)
        return [gradient * factor if value.name == PARAMETER else gradient for value, gradient in found]

    replace_existing(paddle.static, "gradients", wrong)


def make_rank_hang() -> None:
    """Let a process of a job stop in its first step, as if it computed for ever."""
    import paddle

    run = paddle.static.Executor.run

    def hanging(self: Any, *arguments: Any, **options: Any) -> Any:
        if "input_ids" in (options.get("feed") or {}):
            os.kill(os.getpid(), signal.SIGSTOP)
        return run(self, *arguments, **options)

    if os.environ.get("PADDLE_TRAINER_ID") == RANK:
        replace_existing(paddle.static.Executor, "run", hanging)


def pretend() -> None:
    """Do all this in the current process, with the fault in its environment."""
    fault = os.environ[FAULT]
    assert fault in ("", *FAULTS)
    register_kernels()
    replace_half_precision()
    if fault == WRONG_GRADIENT:
        make_gradient_wrong()
    if fault == HANG:
        make_rank_hang()
