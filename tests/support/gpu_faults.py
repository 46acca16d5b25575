"""What tests/gpu asks of a pretended GPU beyond the device (see pretended_gpu), and a fault.

What is meant to be float16, for which Paddle has no kernels on a CPU, is bfloat16. A fault is put into new processes
from outside: nothing in the project knows of it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from tests.support import pretended_gpu
from tests.support.pretended_gpu import replace_existing

# The environment variable with a fault, "" for none; pretended_gpu/sitecustomize.py calls `pretend` if it is set.
FAULT = "PRETENDED_FAULT"
WRONG_GRADIENT = "wrong gradient"
# The parameter whose gradient is wrong on the GPU.
PARAMETER = "encoder_layer_0_ffn_fc_0.w_0"


def environment(gpus: int = 1, fault: str = "") -> dict[str, str]:
    """Return the environment variables under which new processes pretend, with a fault or without one."""
    return {**pretended_gpu.environment(gpus), FAULT: fault}


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


def pretend() -> None:
    """Do all this in the current process, with the fault in its environment."""
    fault = os.environ[FAULT]
    assert fault in ("", WRONG_GRADIENT)
    replace_half_precision()
    if fault == WRONG_GRADIENT:
        make_gradient_wrong()
